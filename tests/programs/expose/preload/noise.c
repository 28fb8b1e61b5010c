// A preload that sleeps at random before calls of pthreads: what people do for want of schedules.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void noise(void)
{
    static __thread unsigned state;
    if (!state) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = (unsigned)now.tv_nsec ^ (unsigned)(long)&state ^ (unsigned)getpid();
    }
    if (rand_r(&state) % 3 == 0)
        usleep((useconds_t)rand_r(&state) % 20000);
}

#define NOISY(name, parameters, arguments)                            \
    int name parameters                                               \
    {                                                                 \
        static int(*original) parameters;                             \
        if (!original)                                                \
            original = (int(*) parameters)dlsym(RTLD_NEXT, #name);    \
        noise();                                                      \
        int answer = original arguments;                              \
        noise();                                                      \
        return answer;                                                \
    }

NOISY(pthread_mutex_lock, (pthread_mutex_t *lock), (lock))
NOISY(pthread_mutex_unlock, (pthread_mutex_t *lock), (lock))
NOISY(pthread_rwlock_rdlock, (pthread_rwlock_t *lock), (lock))
NOISY(pthread_rwlock_wrlock, (pthread_rwlock_t *lock), (lock))
NOISY(pthread_rwlock_unlock, (pthread_rwlock_t *lock), (lock))
NOISY(pthread_cond_signal, (pthread_cond_t *condition), (condition))
NOISY(pthread_join, (pthread_t thread, void **result), (thread, result))
NOISY(pthread_create, (pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument),
      (thread, how, run, argument))
