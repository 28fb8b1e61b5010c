// build: -O1
// clone with an own stack, in the flavours that are not threads: copy, CLONE_VM, CLONE_VFORK, shared
// descriptors, clone3, SIGCHLD-less children, CLONE_PARENT_SETTID, pidfd.
#include "check.h"
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
static volatile int shared = 0;
static int body(void *arg) { shared = (int)(intptr_t)arg; return shared + 1; }
static int opener(void *arg) { return dup2(*(int *)arg, 50) == 50 ? 0 : 1; }
int main(void)
{
    char *stack = (char *)mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + (1 << 18);
    int status;
    pid_t pid = clone(body, stack, SIGCHLD, (void *)5);
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 6 && shared == 0);
    pid = clone(body, stack, CLONE_VM | SIGCHLD, (void *)7);
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 8);
    printf("CLONE_VM shared %d\n", shared);
    pid = clone(body, stack, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)9);
    printf("CLONE_VFORK shared %d\n", shared);
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 10);
    int null = open("/dev/null", O_RDONLY);
    pid = clone(opener, stack, CLONE_FILES | SIGCHLD, &null);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    printf("CLONE_FILES descriptor %s\n", fcntl(50, F_GETFD) >= 0 ? "there" : "missing");
    pid = clone(body, stack, 0, (void *)1);          /* no exit signal: only __WALL sees it */
    CHECK(waitpid(pid, &status, 0) == -1 && errno == ECHILD);
    CHECK(waitpid(pid, &status, __WALL) == pid);
    int pidfd = -1;
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == -1) {
        CHECK(errno == ENOSYS);                      /* allowed: glibc falls back to clone */
    } else {
        if (pid == 0) _exit(21);
        struct pollfd ended = {pidfd, POLLIN, 0};
        CHECK(poll(&ended, 1, 20000) == 1);
        siginfo_t info;
        CHECK(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) == 0 && info.si_status == 21);
    }
    return ok();
}
