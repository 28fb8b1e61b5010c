/* A function that locks calls another that locks. build: gcc -g -O0 -pthread; class: deadlock; timeout: 1 */
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static void add(int amount)
{
    pthread_mutex_lock(&lock);
    balance += amount;
    pthread_mutex_unlock(&lock);
}
static void move(int amount)
{
    pthread_mutex_lock(&lock); /* ROOT */
    add(-amount);
    pthread_mutex_unlock(&lock);
}
int main(void)
{
    add(10);
    move(3);
    printf("%d\n", balance);
    return 0;
}
