// build: -O1 -pthread
// Fork from a threaded program: only the caller lives on in the child, atfork handlers run, the
// child makes threads of its own; exec from a thread that is not the leader.
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
static atomic_int stop, spins;
static int prepared, parented, childed;
static void *busy(void *a) { while (!stop) spins++; return a; }
static void *small(void *a) { return (char *)a + 1; }
static void *exec_it(void *a)
{
    char *words[] = {"sh", "-c", "echo from exec; exit 6", NULL};
    execv("/bin/sh", words);
    _exit(9);
    return a;
}
static void prepare(void) { prepared++; }
static void parent(void) { parented++; }
static void child(void) { childed++; }
int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    pthread_atfork(prepare, parent, child);
    pthread_t t[3];
    for (int i = 0; i < 3; i++) CHECK(!pthread_create(&t[i], NULL, busy, NULL));
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (!pid) {
            pthread_t mine;
            void *r;
            CHECK(getpid() == gettid() && childed == 1);
            for (int k = 0; k < 5; k++) {
                CHECK(!pthread_create(&mine, NULL, small, (void *)8) && !pthread_join(mine, &r));
                CHECK(r == (void *)9);
            }
            free(malloc(100000));
            exit(i);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == i);
    }
    printf("prepared %d parent %d child %d\n", prepared, parented, childed);
    pid_t pid = fork();
    if (!pid) {
        pthread_t other[2];
        for (int i = 0; i < 2; i++) CHECK(!pthread_create(&other[i], NULL, busy, NULL));
        pthread_t mine;
        CHECK(!pthread_create(&mine, NULL, exec_it, NULL));
        for (;;) pause();
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("exec from a thread: %d\n", WEXITSTATUS(status));
    stop = 1;
    for (int i = 0; i < 3; i++) CHECK(!pthread_join(t[i], NULL));
    return ok();
}
