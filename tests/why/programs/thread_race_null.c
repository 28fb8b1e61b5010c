/* A thread clears what another uses. build: gcc -g -O0 -pthread; class: null-pointer */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int value = 7;
static int *volatile shared = &value;
static void *closer(void *argument)
{
    shared = NULL; /* ROOT */
    return argument;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, closer, NULL);
    usleep(50000);
    printf("%d\n", *shared);
    pthread_join(thread, NULL);
    return 0;
}
