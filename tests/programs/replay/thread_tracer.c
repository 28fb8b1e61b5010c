// build: -O1 -pthread
// A child that shares all memory attaches to its parent's threads by ptrace, looks at their
// registers and lets them go, as a leak checker does; meanwhile one of them computes, one sleeps
// and one waits for the child's answer.
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define STACK 262144
static pid_t numbers[3];
static volatile int begun, may_look, done, over;
static volatile unsigned long work;
static unsigned long seen[3];

static void *compute(void *argument)
{
    numbers[1] = (pid_t)syscall(SYS_gettid);
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    while (!over) work++;
    return argument;
}

static void *rest(void *argument)
{
    numbers[2] = (pid_t)syscall(SYS_gettid);
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    while (!over) usleep(1000);
    return argument;
}

static int look(void *argument)
{
    unsigned long before, after;
    while (!may_look) sched_yield();
    for (int i = 0; i < 3; i++) {
        int status;
        if (ptrace(PTRACE_ATTACH, numbers[i], NULL, NULL)) _exit(20 + i);
        if (waitpid(numbers[i], &status, __WALL) != numbers[i]) _exit(30 + i);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) _exit(40 + i);
    }
    before = work;
    for (int i = 0; i < 3; i++) {
        struct user_regs_struct registers;
        if (ptrace(PTRACE_GETREGS, numbers[i], NULL, &registers)) _exit(50 + i);
        seen[i] = registers.rsp;
        unsigned long word;
        struct iovec set = {&registers, sizeof registers};
        if (ptrace(PTRACE_GETREGSET, numbers[i], (void *)1, &set)) _exit(60 + i);
        if (set.iov_len != sizeof registers || registers.rsp != seen[i]) _exit(70 + i);
        if (syscall(SYS_ptrace, PTRACE_PEEKDATA, numbers[i], seen[i], &word)) _exit(80 + i);
        if (word != *(unsigned long *)seen[i]) _exit(90 + i);
    }
    usleep(3000);
    after = work;
    if (before != after) _exit(10);
    for (int i = 0; i < 3; i++)
        if (ptrace(PTRACE_DETACH, numbers[i], NULL, NULL)) _exit(100 + i);
    done = 1;
    return (int)(long)argument;
}

int main(void)
{
    pthread_t threads[2];
    char here;
    numbers[0] = getpid();
    CHECK(!pthread_create(&threads[0], NULL, compute, NULL));
    CHECK(!pthread_create(&threads[1], NULL, rest, NULL));
    while (begun < 2) sched_yield();
    for (int round = 0; round < 3; round++) {
        char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(stack != MAP_FAILED);
        done = may_look = 0;
        pid_t child = clone(look, stack + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, (void *)7L);
        MUST(child);
        prctl(PR_SET_PTRACER, child, 0, 0, 0);
        may_look = 1;
        while (!done) {
            int status;
            if (waitpid(child, &status, __WALL | WNOHANG) == child) {
                CHECK(done || !WIFEXITED(status) || !WEXITSTATUS(status));
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
                goto gone;
            }
            sched_yield();
        }
        int status;
        CHECK(waitpid(child, &status, __WALL) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    gone:
        CHECK(seen[0] < (unsigned long)&here + 4096 && seen[0] > (unsigned long)&here - 65536);
        printf("round %d: %lu\n", round, work);
        MUST(munmap(stack, STACK));
    }
    over = 1;
    for (int i = 0; i < 2; i++) CHECK(!pthread_join(threads[i], NULL));
    puts("ok");
}
