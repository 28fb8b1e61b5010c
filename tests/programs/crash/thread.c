// A named thread reads through a null pointer while the first thread waits for it.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

struct job {
    int number;
    int *result;
};

static int work(struct job *job)
{
    return *job->result + job->number;
}

static void *worker(void *job)
{
    pthread_setname_np(pthread_self(), "bookkeeper");
    printf("%d\n", work(job));
    return NULL;
}

int main(void)
{
    struct job job = {7, NULL};
    pthread_t thread;
    pthread_create(&thread, NULL, worker, &job);
    pthread_join(thread, NULL);
    return 0;
}
