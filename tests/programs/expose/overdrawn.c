// depth: 2, no race
// The balance is looked at in one critical section and the money taken in the next.
#include "expose.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;
static void withdraw(int amount)
{
    pthread_mutex_lock(&lock);
    int is_enough = balance >= amount;
    pthread_mutex_unlock(&lock);
    if (!is_enough)
        return;
    pthread_mutex_lock(&lock);
    balance -= amount;
    pthread_mutex_unlock(&lock);
}
static void *soon(void *unused) { withdraw(80); return unused; }
static void *late(void *unused) { work(LONG); withdraw(80); return unused; }
int main(void) { TOGETHER(soon, late); return verdict(balance < 0); }
