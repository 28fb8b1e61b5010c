// build: -O1 -Wall -Wno-unused-result
// Processes: starting and waiting, identity, limits, scheduling, properties, tracing.
#include "call.h"
#include <elf.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

static int child(void) {
    int pid = fork();
    if (pid == 0) _exit(3);
    return pid;
}

static void waiting(void) {
    child();
    call(SYS_wait4, -1, room(4), 0, room(144));
    child();
    call(SYS_wait4, -1, room(4), 0, edge(40));
    call(SYS_wait4, -1, room(4), 0, room(144));
    child();
    call(SYS_waitid, P_ALL, 0, room(128), WEXITED | WNOWAIT, room(144));
    call(SYS_waitid, P_ALL, 0, room(128), WEXITED, NULL);
    call(SYS_waitid, P_ALL, 0, room(128), WEXITED, room(144));
    int stopped = fork();
    if (stopped == 0) {
        pause();
        _exit(0);
    }
    call(SYS_wait4, stopped, room(4), WNOHANG, room(144));
    call(SYS_waitid, P_PID, stopped, room(128), WEXITED | WNOHANG, room(144));
    interrupt_soon();
    call(SYS_waitid, P_PID, stopped, room(128), WEXITED, room(144));
    kill(stopped, SIGKILL);
    waitpid(stopped, NULL, 0);
}

static void starting(void) {
    if (call(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, 0, room(4), room(4), 0) == 0)
        _exit(0);
    wait(NULL);
    if (call(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, room(4), 0, 0) == 0) _exit(0);
    wait(NULL);
    struct clone_args *how = room(sizeof *how);
    memset(how, 0, sizeof *how);
    how->flags = CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
    how->pidfd = (uintptr_t)room(4);
    how->parent_tid = (uintptr_t)room(4);
    how->child_tid = (uintptr_t)room(4);
    how->exit_signal = SIGCHLD;
    if (call(SYS_clone3, how, sizeof *how) == 0) _exit(0);
    wait(NULL);
    how->flags = ~0ull;
    call(SYS_clone3, how, sizeof *how);
}

static void identity(void) {
    call(SYS_getgroups, 0, NULL);
    call(SYS_getgroups, 1000, room(4000));
    call(SYS_getresuid, room(4), room(4), room(4));
    call(SYS_getresgid, room(4), room(4), edge(2));
    call(SYS_getresgid, room(4), room(4), room(4));
    static const unsigned versions[] = {0x19980330, 0x20071026, 0x20080522, 7};
    for (int i = 0; i < 4; i++) {
        struct __user_cap_header_struct *header = room(8);
        *header = (struct __user_cap_header_struct){versions[i], 0};
        call(SYS_capget, header, room(24));
        header->version = 9;
        call(SYS_capset, header, room(24));
    }
    struct __user_cap_header_struct *header = room(8);
    *header = (struct __user_cap_header_struct){0, 0};
    call(SYS_capget, header, NULL);
}

static void limits(void) {
    call(SYS_getrlimit, 7, room(16));
    call(SYS_prlimit64, 0, 7, NULL, room(16));
    call(SYS_getrusage, 0, room(144));
    call(SYS_getrusage, 99, room(144));
    call(SYS_times, room(32));
    call(SYS_sched_getparam, 0, room(4));
    call(SYS_sched_rr_get_interval, 0, room(16));
    call(SYS_sched_getaffinity, 0, 128, room(128));
    call(SYS_sched_getaffinity, 0, 4, room(128));
    unsigned *attributes = room(120);
    call(SYS_sched_getattr, 0, attributes, 48, 0);
    call(SYS_sched_getattr, 0, attributes, 56, 0);
    call(SYS_sched_getattr, 0, room(100), 100, 0);
    memset(attributes, 0, 120);
    attributes[0] = 20;
    call(SYS_sched_setattr, 0, attributes, 0);
    attributes[0] = 120;
    attributes[28] = 1;
    call(SYS_sched_setattr, 0, attributes, 0);
    attributes[0] = 0;
    attributes[28] = 0;
    call(SYS_sched_setattr, 0, attributes, 0);
    call(SYS_getcpu, room(4), room(4), NULL);
    call(SYS_get_robust_list, 0, room(8), room(8));
    struct iovec *here = room(32), *there = room(32);
    here[0] = (struct iovec){room(7), 7};
    here[1] = (struct iovec){room(50), 50};
    there[0] = (struct iovec){(void *)waiting, 30};
    call(SYS_process_vm_readv, getpid(), here, 2, there, 1, 0);
    call(SYS_process_vm_readv, 1 << 30, here, 2, there, 1, 0);
    call(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, room(6));
}

static void properties(void) {
    static const int ints[] = {PR_GET_PDEATHSIG, PR_GET_UNALIGN, PR_GET_FPEMU, PR_GET_FPEXC, PR_GET_ENDIAN,
        PR_GET_TSC, PR_GET_CHILD_SUBREAPER, PR_GET_NAME, PR_GET_TID_ADDRESS, 74};
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) call(SYS_prctl, ints[i], room(16), 0, 0, 0);
    call(SYS_prctl, PR_SET_MM, 15 /* PR_SET_MM_MAP_SIZE */, room(4), 0, 0);
    call(SYS_prctl, 0x41555856 /* PR_GET_AUXV */, room(1000), 1000, 0, 0);
    call(SYS_prctl, 0x41555856, room(1000), 40, 0, 0);
    call(SYS_prctl, 62 /* PR_SCHED_CORE */, 0, 0, 0, room(8));
    call(SYS_prctl, PR_GET_NAME, edge(5), 0, 0, 0);
    call(SYS_prctl, 12345, 0, 0, 0, 0);
    static const int bases[] = {0x1003, 0x1004, 0x1011, 0x1021, 0x1022, 0x1024, 0x4001, 0x4003, 0x5005};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) call(SYS_arch_prctl, bases[i], room(8));
    call(SYS_modify_ldt, 0, room(256), 256);
    unsigned description[4] = {0, 0x1000, 0xfffff, 0x51};
    call(SYS_modify_ldt, 1, description, 16);
    call(SYS_modify_ldt, 0, room(256), 256);
    call(SYS_modify_ldt, 2, room(256), 256);
    call(SYS_set_thread_area, room(16));
    call(SYS_get_thread_area, room(16));
}

// A child that the oracle does not trace, so that this program may.
static void tracing(void) {
    long pid = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        for (;;) getppid();
    call(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0);
    waitpid(pid, NULL, 0);
    call(SYS_ptrace, PTRACE_PEEKTEXT, pid, tracing, room(8));
    call(SYS_ptrace, PTRACE_PEEKDATA, pid, tracing, room(8));
    call(SYS_ptrace, PTRACE_PEEKDATA, pid, 0, room(8));
    call(SYS_ptrace, PTRACE_PEEKUSER, pid, 8, room(8));
    call(SYS_ptrace, PTRACE_GETREGS, pid, 0, room(sizeof(struct user_regs_struct)));
    call(SYS_ptrace, PTRACE_GETFPREGS, pid, 0, room(sizeof(struct user_fpregs_struct)));
    call(SYS_ptrace, PTRACE_GETSIGINFO, pid, 0, room(128));
    call(SYS_ptrace, PTRACE_GETSIGMASK, pid, 8, room(8));
    call(SYS_ptrace, 25 /* PTRACE_GET_THREAD_AREA */, pid, 12, room(16));
    call(SYS_ptrace, 30 /* PTRACE_ARCH_PRCTL */, pid, room(8), 0x1003);
    struct iovec *where = room(16);
    *where = (struct iovec){room(4096), 4096};
    call(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, where);
    *where = (struct iovec){room(40), 40};
    call(SYS_ptrace, PTRACE_GETREGSET, pid, NT_PRSTATUS, where);
    call(SYS_ptrace, PTRACE_SETREGSET, pid, NT_PRSTATUS, where);
    struct user_regs_struct *registers = room(sizeof *registers);
    *where = (struct iovec){registers, sizeof *registers};
    call(SYS_ptrace, PTRACE_GETREGSET, pid, NT_PRSTATUS, where);
    *where = (struct iovec){registers, 100000};
    call(SYS_ptrace, PTRACE_SETREGSET, pid, NT_PRSTATUS, where);
    kill(pid, SIGUSR1);
    struct { uint64_t off; uint32_t flags; int32_t nr; } *which = room(16);
    *which = (typeof(*which)){0, 1, 3};
    call(SYS_ptrace, PTRACE_PEEKSIGINFO, pid, which, room(3 * 128));
    call(SYS_ptrace, 0x420f /* PTRACE_GET_RSEQ_CONFIGURATION */, pid, 24, room(24));
    call(SYS_ptrace, PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD);
    call(SYS_ptrace, PTRACE_SYSCALL, pid, 0, 0);
    waitpid(pid, NULL, 0);
    call(SYS_ptrace, PTRACE_GET_SYSCALL_INFO, pid, 88, room(88));
    call(SYS_ptrace, PTRACE_GET_SYSCALL_INFO, pid, 20, room(88));
    call(SYS_ptrace, PTRACE_CONT, pid, 0, SIGTERM);
    int status;
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        if (status >> 16 == PTRACE_EVENT_EXIT) call(SYS_ptrace, PTRACE_GETEVENTMSG, pid, 0, room(8));
        syscall(SYS_ptrace, PTRACE_CONT, pid, 0, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
    }
}

int main(void) {
    waiting();
    starting();
    identity();
    limits();
    properties();
    tracing();
    return 0;
}
