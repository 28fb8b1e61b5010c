/* The signal comes before the wait, and is lost. build: gcc -g -O0 -pthread; class: waiting,deadlock; timeout: 2 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static void *producer(void *argument)
{
    pthread_cond_signal(&ready);
    return argument;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, producer, NULL);
    usleep(50000);
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&ready, &lock); /* ROOT */
    pthread_mutex_unlock(&lock);
    puts("done");
    return 0;
}
