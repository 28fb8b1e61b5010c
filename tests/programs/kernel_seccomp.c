// build: -O1 -pthread
// reports
// Filters of system calls: an error number, a trap with its siginfo, the strictest of two, a filter of
// one thread alone, one that a program started by execve inherits, a fatal one, and strict mode.
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
static void forbid(long call, unsigned verdict)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xc000003e, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffff),
        BPF_STMT(BPF_ST, 3),
        BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),
        BPF_STMT(BPF_LD | BPF_IMM, call),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, verdict),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}
static volatile siginfo_t trapped;
static void on_trap(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    trapped = *info;
}
static void *sandboxed(void *unused)
{
    forbid(SYS_getuid, SECCOMP_RET_ERRNO | 77);
    CHECK(syscall(SYS_getuid) == -1 && errno == 77);
    return unused;
}
static void child(const char *name, void (*body)(void))
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        body();
        _exit(5);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("%s: exit %d signal %d\n", name, WEXITSTATUS(status), WTERMSIG(status));
}
static void fatal(void) { forbid(SYS_getgid, SECCOMP_RET_KILL_PROCESS); syscall(SYS_getgid); }
static void strict(void) { MUST(prctl(PR_SET_SECCOMP, 1)); syscall(SYS_write, 1, "w\n", 2); syscall(SYS_getgid); }
static void invalid(void)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {2, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(prctl(PR_SET_SECCOMP, 2, &program) == -1 && errno == EINVAL);
    CHECK(prctl(PR_GET_SECCOMP) == 0);
}
static char *self;
static void inherit(void)
{
    forbid(SYS_getppid, SECCOMP_RET_ERRNO | 99);
    CHECK(prctl(PR_GET_SECCOMP) == 2);
    execl(self, self, "again", NULL);
}
int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1) return syscall(SYS_getppid) == -1 && errno == 99 ? 42 : 43;
    child("fatal", fatal);
    child("strict", strict);
    child("invalid", invalid);
    child("inherit", inherit);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, sandboxed, NULL));
    CHECK(!pthread_join(thread, NULL));
    CHECK(syscall(SYS_getuid) == getuid());
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGSYS, &action, NULL));
    forbid(SYS_getegid, SECCOMP_RET_TRAP | 33);
    syscall(SYS_getegid);
    printf("trap %d %d %d %x\n", trapped.si_errno, trapped.si_code, trapped.si_syscall, trapped.si_arch);
    forbid(SYS_geteuid, SECCOMP_RET_ERRNO | 11);
    forbid(SYS_geteuid, SECCOMP_RET_ALLOW);
    CHECK(syscall(SYS_geteuid) == -1 && errno == 11);
    unsigned action_asked = SECCOMP_RET_TRAP;
    MUST(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action_asked));
    return ok();
}
