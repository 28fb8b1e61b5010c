// build: -O1 -pthread
// exit_group against everything: threads spinning, blocked in read, futex and sleep, and being
// created, while another thread (or main) exits; pthread_exit in main with threads going on.
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
static int p[2];
static void *spin(void *a) { for (volatile long i = 0;; i++) {} return a; }
static void *blocked_read(void *a) { char c; (void)!read(p[0], &c, 1); return a; }
static void *sleeper(void *a) { sleep(1000); return a; }
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static void *locker(void *a) { pthread_mutex_lock(&held); return a; }
static void *creator(void *a)
{
    for (;;) {
        pthread_t t;
        if (!pthread_create(&t, NULL, locker, NULL)) pthread_detach(t);
        usleep(100);
    }
    return a;
}
static void *leaver(void *a) { usleep(2000); _exit((int)(intptr_t)a); }
static void *last(void *a) { usleep(2000); puts("the last thread"); return a; }
int main(void)
{
    MUST(pipe(p));
    void *(*kinds[])(void *) = {spin, blocked_read, sleeper, locker, creator};
    for (int i = 0; i < 12; i++) {
        pid_t pid = fork();
        if (!pid) {
            pthread_mutex_lock(&held);
            pthread_t t;
            for (int k = 0; k < 5; k++) CHECK(!pthread_create(&t, NULL, kinds[(k + i) % 5], NULL));
            if (i % 3 == 0) _exit(10 + i);
            if (i % 3 == 1) CHECK(!pthread_create(&t, NULL, leaver, (void *)(intptr_t)(10 + i)));
            if (i % 3 == 2) usleep(1000), kill(getpid(), SIGKILL);
            for (;;) pause();
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        printf("%d: %s %d\n", i, WIFEXITED(status) ? "exit" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        fflush(stdout);
    }
    pid_t pid = fork();
    if (!pid) {
        pthread_t t;
        pthread_create(&t, NULL, last, NULL);
        pthread_exit(NULL);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return ok();
}
