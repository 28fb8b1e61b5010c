// A traced child stops at its own signals while it shares memory with its tracer, which then runs on.
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int main(void)
{
    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t child = fork();
    MUST(child);
    if (child == 0) {
        MUST(ptrace(PTRACE_TRACEME, 0, 0, 0));
        for (int i = 0; i < 20; i++) {
            shared[0] = i;
            raise(i % 2 ? SIGUSR1 : SIGSTOP);
            CHECK(shared[1] == i);
        }
        _exit(31);
    }
    int status;
    for (int i = 0; i < 20; i++) {
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        CHECK(WSTOPSIG(status) == (i % 2 ? SIGUSR1 : SIGSTOP) && shared[0] == i);
        shared[1] = i;
        MUST(ptrace(PTRACE_CONT, child, 0, 0));
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 31);
    return ok();
}
