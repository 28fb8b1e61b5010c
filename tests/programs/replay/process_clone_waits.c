// CLONE_VFORK without CLONE_VM: the kernel holds the parent until its child has ended, and the two share memory.
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

int main(void)
{
    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (int i = 0; i < 10; i++) {
        shared[0] = i;
        pid_t child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
        MUST(child);
        if (child == 0) {
            usleep(100);
            shared[1] = shared[0] + 1;
            _exit(i);
        }
        int status;
        CHECK(shared[1] == i + 1);
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == i);
    }
    return ok();
}
