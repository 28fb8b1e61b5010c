/* Two locks in two orders. build: gcc -g -O0 -pthread; class: deadlock; timeout: 2 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static void *transfer(void *argument)
{
    pthread_mutex_lock(&accounts);
    usleep(20000);
    pthread_mutex_lock(&journal);
    pthread_mutex_unlock(&journal);
    pthread_mutex_unlock(&accounts);
    return argument;
}
static void *report(void *argument)
{
    pthread_mutex_lock(&journal); /* ROOT */
    usleep(20000);
    pthread_mutex_lock(&accounts);
    pthread_mutex_unlock(&accounts);
    pthread_mutex_unlock(&journal);
    return argument;
}
int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, transfer, NULL);
    pthread_create(&two, NULL, report, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    puts("done");
    return 0;
}
