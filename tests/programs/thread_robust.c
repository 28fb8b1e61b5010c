// build: -O1 -pthread
// Robust futexes: a thread and then a process die while holding a robust mutex; the next owner must
// get EOWNERDEAD. Priority-inheriting mutexes too.
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <signal.h>
static pthread_mutex_t *mutex;
static void *die_holding(void *arg) { CHECK(!pthread_mutex_lock(mutex)); return arg; }
static void make(int shared, int protocol)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attr, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
    pthread_mutexattr_setprotocol(&attr, protocol);
    CHECK(!pthread_mutex_init(mutex, &attr));
}
int main(void)
{
    mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    make(0, PTHREAD_PRIO_NONE);
    pthread_t t;
    CHECK(!pthread_create(&t, NULL, die_holding, NULL) && !pthread_join(t, NULL));
    CHECK(pthread_mutex_lock(mutex) == EOWNERDEAD);
    CHECK(!pthread_mutex_consistent(mutex) && !pthread_mutex_unlock(mutex));
    puts("thread died holding");
    make(1, PTHREAD_PRIO_NONE);
    for (int how = 0; how < 3; how++) {
        pid_t pid = fork();
        if (!pid) {
            CHECK(!pthread_mutex_lock(mutex));
            if (how == 0) _exit(0);
            if (how == 1) exit(0);
            kill(getpid(), SIGKILL);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(pthread_mutex_lock(mutex) == EOWNERDEAD);
        CHECK(!pthread_mutex_consistent(mutex) && !pthread_mutex_unlock(mutex));
        printf("process died holding, way %d\n", how);
    }
    pthread_mutex_t pi;
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    CHECK(!pthread_mutex_init(&pi, &attr));
    CHECK(!pthread_mutex_lock(&pi) && pthread_mutex_trylock(&pi) == EBUSY && !pthread_mutex_unlock(&pi));
    return ok();
}
