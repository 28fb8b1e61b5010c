// depth: 2, no race, four variables
// A transfer changes four accounts, each under its lock; the sum is read account by account.
#include "expose.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int accounts[4] = {10, 10, 10, 10}, wrong;
static void add(int account, int amount)
{
    pthread_mutex_lock(&lock);
    accounts[account] += amount;
    pthread_mutex_unlock(&lock);
}
static void *move(void *unused)
{
    work(2 * LONG);
    add(0, -2);
    add(1, 1);
    add(2, 2);
    add(3, -1);
    return unused;
}
static void *look(void *unused)
{
    pthread_mutex_lock(&lock);
    wrong = accounts[0] + accounts[1] + accounts[2] + accounts[3] != 40;
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) { TOGETHER(look, move); return verdict(wrong); }
