// build: -O1
// reports
// What an engine may refuse must be refused as kernels do: io_uring, userfaultfd, perf, bpf, rseq may
// fail, but cleanly; unknown system calls give ENOSYS; personality, capabilities and privileged calls
// answer; prctl of all sorts; the program goes on.
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <signal.h>
static void refused(const char *name, long result)
{
    int clean = result >= 0 || errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == EFAULT || errno == ENODEV || errno == ENOENT || errno == EACCES || errno == EOPNOTSUPP;
    if (result > 2) close((int)result);
    printf("%s %s\n", name, clean ? "answered" : strerrorname_np(errno));
}
int main(void)
{
    char parameters[120] = {0};
    refused("io_uring_setup", syscall(425, 4, parameters));
    refused("userfaultfd", syscall(SYS_userfaultfd, 0));
    memset(parameters, 0, sizeof parameters);
    refused("perf_event_open", syscall(SYS_perf_event_open, parameters, 0, -1, -1, 0));
    refused("bpf", syscall(SYS_bpf, 0, parameters, sizeof parameters));
    refused("rseq", syscall(SYS_rseq, parameters, 7, 0, 0));
    /* Barriers for restartable sequences come with them or not at all: tcmalloc relies on it. */
    int restartable = syscall(SYS_rseq, NULL, 0, 0, 0) != -1 || errno != ENOSYS;
    long barriers = syscall(SYS_membarrier, 0, 0, 0);
    CHECK(barriers >= 0 && !!(barriers & 1 << 8) == restartable);
    CHECK((syscall(SYS_membarrier, 1 << 8, 0, 0) == 0) == restartable);
    CHECK((syscall(SYS_membarrier, 1 << 7, 0, 0) == 0) == restartable);
    CHECK(syscall(1000) == -1 && errno == ENOSYS);
    CHECK(syscall(4000) == -1 && errno == ENOSYS);
    CHECK(syscall(-1) == -1 && errno == ENOSYS);
    CHECK(personality(0xffffffff) != -1);
    struct utsname name;
    MUST(uname(&name));
    printf("%s %s\n", name.sysname, name.machine);
    pid_t pid = fork();
    if (!pid) {
        MUST(setgid(65534));
        MUST(setuid(65534));
        CHECK(setuid(0) == -1 && errno == EPERM);
        CHECK(chroot("/") == -1 && errno == EPERM);
        CHECK(sethostname("x", 1) == -1 && errno == EPERM);
        CHECK(kill(1, 0) == -1 && errno == EPERM);
        CHECK(geteuid() == 65534 && getegid() == 65534);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("unprivileged %d\n", status);
    MUST(prctl(PR_SET_DUMPABLE, 0));
    CHECK(prctl(PR_GET_DUMPABLE) == 0);
    MUST(prctl(PR_SET_DUMPABLE, 1));
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    CHECK(prctl(99999) == -1 && errno == EINVAL);
    pid = fork();
    if (!pid) {                                      /* seccomp: in force, or refused */
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 123),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {4, filter};
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
            CHECK(syscall(SYS_getppid) == -1 && errno == 123);
        else
            CHECK(errno == EINVAL || errno == EPERM || errno == ENOSYS);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("seccomp %d\n", status);
    long bad = syscall(SYS_rt_sigaction, 70, NULL, NULL, 8);
    CHECK(bad == -1 && errno == EINVAL);
    CHECK(syscall(SYS_rt_sigprocmask, 77, parameters, NULL, 8) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_rt_sigprocmask, 0, NULL, NULL, 4) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_set_robust_list, parameters, 3) == -1 && errno == EINVAL);
    CHECK(kill(getpid(), 99) == -1 && errno == EINVAL && kill(getpid(), 0) == 0);
    return ok();
}
