// Random sequences of what makes, changes and ends processes. Each seed is a sequence, played by a child of
// its own; what every call did is checked against what Linux promises and printed, so that a run under the
// tool must print what a native one does.
//
//     [ONLY="fork exec"] processes FIRST COUNT    only these operations
//     processes --exec SEED DEPTH LENGTH       what a sequence goes on as after execve
//
// At any time only one process of a sequence goes on, but for those whose lines another one takes in turn.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;
static int depth, operations_left;
static char self[4096];
static const char *current = "?";

static uint32_t any(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

static void say(const char *form, ...) {
    char line[512];
    int used = snprintf(line, sizeof line, "%*s%s: ", depth * 2, "", current);
    va_list rest;
    va_start(rest, form);
    used += vsnprintf(line + used, sizeof line - used - 1, form, rest);
    va_end(rest);
    line[used++] = '\n';
    if (write(1, line, used) != used)
        _exit(99);
}

static void bad(int line, const char *what) {
    say("line %d: %s does not hold (errno %d)", line, what, errno);
    _exit(98);
}
#define MUST(holds) ((holds) ? (void)0 : bad(__LINE__, #holds))

// There are no more processes in a namespace whose first one has ended.
#define LEAVE_UNLESS(child)                  \
    if (child < 0) {                         \
        say("no process: errno %d", errno);  \
        return;                              \
    }

static void play(int length);

// What a wait gave, in words.
static void ended(pid_t child, int options) {
    int status = 0;
    struct rusage usage;
    pid_t got;
    do
        got = wait4(child, &status, options, &usage);
    while (got < 0 && errno == EINTR);
    MUST(got == child);
    if (WIFEXITED(status))
        say("exit %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        say("signal %d", WTERMSIG(status));
    else
        say("status %x", status);
}

static void do_fork(void) {
    uint32_t code = any(256);
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        state += 77;
        MUST(getpid() > 0);
        depth++;
        play(any(4));
        _exit(code);
    }
    siginfo_t info;
    if (any(2)) {
        memset(&info, 0, sizeof info);
        MUST(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
        MUST(info.si_pid == child);
    }
    ended(child, 0);
    MUST(waitpid(child, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void do_vfork(void) {
    volatile int seen = 0;
    int code = any(200), runs = any(3);
    char text[32];
    snprintf(text, sizeof text, "exit %d", code);
    pid_t child = vfork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        seen = 1;
        if (runs == 1)
            execl("/bin/sh", "sh", "-c", text, NULL);
        if (runs == 2)
            execl("/nonexistent/program", "program", NULL);
        _exit(code);
    }
    MUST(seen == 1);
    ended(child, 0);
}

struct passed {
    int code, flags;
    volatile int seen;
};

static int cloned(void *argument) {
    struct passed *passed = argument;
    passed->seen = 7;
    if (passed->flags & CLONE_FS)
        umask(077);
    if (passed->flags & CLONE_FILES)
        syscall(SYS_close, 200);
    return passed->code;
}

static void do_clone(void) {
    static const int some[] = {CLONE_FS, CLONE_FILES, CLONE_VFORK, CLONE_VM, CLONE_IO, CLONE_SYSVSEM, CLONE_UNTRACED};
    static const int names[] = {CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWCGROUP, CLONE_NEWPID};
    int flags = 0;
    for (unsigned i = 0; i < sizeof some / sizeof *some; i++)
        if (any(3) == 0)
            flags |= some[i];
    if (any(4) == 0 && !(flags & (CLONE_VM | CLONE_FS)))
        flags |= names[any(6)];
    if (any(4) == 0 && flags & CLONE_VM)
        flags |= CLONE_SIGHAND;
    int signals[] = {SIGCHLD, SIGCHLD, SIGUSR1, 0};
    int tells = signals[any(4)];
    signal(SIGUSR1, SIG_IGN);
    struct passed passed = {any(200), flags, 0};
    mode_t before = umask(022);
    umask(022);
    int had = dup2(0, 200) == 200;
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    MUST(stack != MAP_FAILED);
    pid_t parent_number = 0, child_number = 0;
    pid_t child = clone(cloned, stack + 65536, flags | tells | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID, &passed,
                        &parent_number, NULL, &child_number);
    if (child < 0) {
        say("flags %x: errno %d", flags, errno);
    } else {
        MUST(parent_number == child);
        ended(child, __WALL);
        MUST(passed.seen == (flags & CLONE_VM ? 7 : 0));
        mode_t now = umask(022);
        MUST(now == (flags & CLONE_FS ? 077 : 022));
        int open = fcntl(200, F_GETFD);
        MUST((open >= 0) == (had && !(flags & CLONE_FILES)));
        say("flags %x", flags);
    }
    umask(before);
    close(200);
    munmap(stack, 65536);
    signal(SIGUSR1, SIG_DFL);
}

static void in_namespaces(int flags) {
    char name[65];
    if (flags & CLONE_NEWPID)
        say("number %d, parent %d", getpid(), getppid());
    if (flags & CLONE_NEWUTS) {
        int set = sethostname("inside", 6);
        gethostname(name, sizeof name);
        say("host %d %s", set, set == 0 ? name : "");
    }
    if (flags & CLONE_NEWNS) {
        int done = mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
        int mounted = done == 0 ? mount("none", "/mnt", "tmpfs", 0, NULL) : -1;
        int file = mounted == 0 ? open("/mnt/inside", O_CREAT | O_RDWR, 0600) : -1;
        say("mount %d %d %d", done, mounted, file >= 0);
        close(file);
    }
    if (flags & CLONE_NEWUSER)
        say("user %d", getuid());
    if (flags & CLONE_NEWNET) {
        int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        say("net %d", sock >= 0);
        close(sock);
    }
}

static void do_namespaces(void) {
    static const int names[] = {CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWCGROUP, CLONE_NEWPID, CLONE_NEWUSER};
    int flags = 0;
    for (int i = 0; i < 7; i++)
        if (any(3) == 0)
            flags |= names[i];
    int by_clone = any(2);
    pid_t child = by_clone ? syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0) : fork();
    if (child < 0) {
        say("flags %x: errno %d", flags, errno);
        return;
    }
    if (child == 0) {
        state += 5;
        if (by_clone) {
            in_namespaces(flags);
        } else {
            int done = unshare(flags);
            say("unshare %x: %d", flags, done ? errno : 0);
            if (done == 0)
                in_namespaces(flags & ~CLONE_NEWPID);
            if (done == 0 && flags & CLONE_NEWPID) {
                pid_t first = fork();
                if (first == 0) {
                    in_namespaces(CLONE_NEWPID);
                    depth++;
                    play(any(3));
                    _exit(any(20));
                }
                if (first > 0)
                    ended(first, 0);
            }
        }
        depth++;
        play(any(3));
        _exit(any(30));
    }
    ended(child, 0);
}

static void do_setns(void) {
    static const char *names[] = {"uts", "ipc", "net", "mnt", "cgroup", "pid", "user", "time"};
    char path[64];
    const char *name = names[any(8)];
    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        say("%s: errno %d", name, errno);
        return;
    }
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        int done = setns(file, 0);
        say("%s: %d", name, done ? errno : 0);
        _exit(0);
    }
    close(file);
    ended(child, 0);
}

// SIGRTMIN is no constant.
#define REAL_TIME 40
static volatile sig_atomic_t handled, handled_value;
static void handler(int number, siginfo_t *info, void *context) {
    (void)context;
    handled = number;
    handled_value = info->si_value.sival_int;
}

static void handle(int number, int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    MUST(sigaction(number, &action, NULL) == 0);
}

static void do_signal(void) {
    static const int numbers[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGWINCH, SIGURG, REAL_TIME, SIGSEGV, SIGALRM};
    int number = numbers[any(9)], how = any(6);
    sigset_t set, old, waiting;
    sigemptyset(&set);
    sigaddset(&set, number);
    handled = handled_value = 0;
    handle(number, any(2) ? SA_RESTART : SA_ONSTACK);
    if (how == 0) {
        raise(number);
        MUST(handled == number);
    } else if (how == 1) {
        sigprocmask(SIG_BLOCK, &set, &old);
        kill(getpid(), number);
        MUST(handled == 0);
        sigpending(&waiting);
        MUST(sigismember(&waiting, number));
        sigprocmask(SIG_SETMASK, &old, NULL);
        MUST(handled == number);
    } else if (how == 2) {
        siginfo_t info;
        struct timespec long_enough = {20, 0};
        sigprocmask(SIG_BLOCK, &set, &old);
        union sigval value = {.sival_int = (int)any(1000)};
        MUST(sigqueue(getpid(), number, value) == 0);
        MUST(sigtimedwait(&set, &info, &long_enough) == number);
        MUST(info.si_value.sival_int == value.sival_int && info.si_pid == getpid());
        sigprocmask(SIG_SETMASK, &old, NULL);
        MUST(handled == 0);
    } else if (how == 3 && number != SIGSEGV) {
        sigprocmask(SIG_BLOCK, &set, &old);
        int file = signalfd(-1, &set, SFD_CLOEXEC);
        struct signalfd_siginfo got;
        kill(getpid(), number);
        MUST(read(file, &got, sizeof got) == sizeof got && (int)got.ssi_signo == number);
        close(file);
        sigprocmask(SIG_SETMASK, &old, NULL);
    } else if (how == 4) {
        pid_t child = fork();
        if (child < 0)
            raise(number);
        if (child == 0) {
            sigprocmask(SIG_BLOCK, &set, &old);
            kill(getppid(), number);
            _exit(0);
        }
        if (child > 0)
            ended(child, 0);
        MUST(handled == number);
    } else {
        pid_t child = fork();
        if (child < 0)
            return;
        if (child == 0) {
            signal(number, SIG_DFL);
            raise(number);
            _exit(3);
        }
        ended(child, 0);
    }
    signal(number, SIG_DFL);
    say("%d %d", number == REAL_TIME ? 0 : number, how);
}

static void do_stop(void) {
    int status;
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        for (;;)
            pause();
    }
    MUST(kill(child, SIGSTOP) == 0);
    MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    if (any(2)) {
        MUST(kill(child, SIGCONT) == 0);
        MUST(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
    }
    int number = any(2) ? SIGKILL : SIGTERM;
    kill(child, number);
    if (number == SIGTERM)
        kill(child, SIGCONT);
    ended(child, 0);
}

static void do_no_zombies(void) {
    int flag = any(2);
    struct sigaction action = {.sa_flags = flag ? SA_NOCLDWAIT : 0}, old;
    action.sa_handler = flag ? SIG_DFL : SIG_IGN;
    sigaction(SIGCHLD, &action, &old);
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0)
        _exit(5);
    MUST(waitpid(child, NULL, 0) == -1 && errno == ECHILD);
    sigaction(SIGCHLD, &old, NULL);
    say("%d", flag);
}

static void do_child_signal(void) {
    sigset_t set, old;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &old);
    int code = any(90);
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0)
        _exit(code);
    do
        MUST(sigwaitinfo(&set, &info) == SIGCHLD);
    while (info.si_pid != child);
    say("%d %d", info.si_code, info.si_status);
    ended(child, 0);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

// Whoever loses its parent goes to the nearest subreaper, which hears of it.
static void do_orphan(void) {
    int pipes[2], status;
    char byte;
    MUST(pipe2(pipes, O_CLOEXEC) == 0);
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        if (any(2))
            setsid();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            pid_t parent = getppid();
            MUST(write(pipes[1], "a", 1) == 1);
            while (getppid() == parent)
                usleep(1000);
            MUST(write(pipes[1], "b", 1) == 1);
            _exit(11);
        }
        MUST(read(pipes[0], &byte, 1) == 1);
        _exit(4);
    }
    ended(child, 0);
    MUST(read(pipes[0], &byte, 1) == 1 && byte == 'b');
    pid_t other = waitpid(-1, &status, 0);
    MUST(other > 0 && WEXITSTATUS(status) == 11);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(pipes[0]);
    close(pipes[1]);
}

static void do_death_signal(void) {
    int pipes[2];
    char byte;
    MUST(pipe2(pipes, O_CLOEXEC) == 0);
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            MUST(write(pipes[1], "a", 1) == 1);
            for (;;)
                pause();
        }
        MUST(read(pipes[0], &byte, 1) == 1);
        _exit(0);
    }
    ended(child, 0);
    close(pipes[1]);
    MUST(read(pipes[0], &byte, 1) == 0); // the last end is gone with the grandchild
    close(pipes[0]);
}

static void do_session(void) {
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        int which = any(3);
        if (which == 0) {
            MUST(setsid() == getpid() && getsid(0) == getpid() && getpgrp() == getpid());
            MUST(setsid() == -1 && errno == EPERM);
        } else if (which == 1) {
            MUST(setpgid(0, 0) == 0 && getpgrp() == getpid());
            signal(SIGUSR1, SIG_IGN);
            MUST(killpg(0, SIGUSR1) == 0);
        } else {
            pid_t other = fork();
            if (other == 0) {
                for (;;)
                    pause();
            }
            MUST(setpgid(other, other) == 0);
            MUST(killpg(other, SIGTERM) == 0);
            ended(other, 0);
        }
        say("%d", which);
        _exit(which);
    }
    ended(child, 0);
}

static void do_prctl(void) {
    char name[17] = {0};
    switch (any(6)) {
    case 0:
        snprintf(name, sizeof name, "name-%u", any(1000));
        MUST(prctl(PR_SET_NAME, name) == 0);
        memset(name, 0, sizeof name);
        MUST(prctl(PR_GET_NAME, name) == 0);
        say("name %s", name);
        break;
    case 1:
        MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        say("no new privileges %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
        break;
    case 2: {
        int set = any(2);
        MUST(prctl(PR_SET_DUMPABLE, set) == 0);
        say("dumpable %d", prctl(PR_GET_DUMPABLE));
        MUST(prctl(PR_SET_DUMPABLE, 1) == 0);
        break;
    }
    case 3:
        say("securebits %d", prctl(PR_GET_SECUREBITS));
        break;
    case 4: {
        int kept = any(2);
        int done = prctl(PR_SET_KEEPCAPS, kept);
        say("keeps %d %d", done, prctl(PR_GET_KEEPCAPS));
        prctl(PR_SET_KEEPCAPS, 0);
        break;
    }
    default:
        MUST(prctl(PR_SET_TIMERSLACK, 60000) == 0);
        say("slack %d", prctl(PR_GET_TIMERSLACK));
    }
}

static void say_capabilities(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    MUST(syscall(SYS_capget, &head, data) == 0);
    say("capabilities %x %x %x", data[0].effective, data[0].permitted, data[0].inheritable);
}

static void go_on(int length) {
    char seed[32], deep[16], rest[16];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)state);
    snprintf(deep, sizeof deep, "%d", depth);
    snprintf(rest, sizeof rest, "%d", length);
    execl(self, self, "--exec", seed, deep, rest, NULL);
    say("execl: errno %d", errno);
}

static void do_capabilities(void) {
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
        struct __user_cap_data_struct data[2];
        MUST(syscall(SYS_capget, &head, data) == 0);
        uint32_t dropped = any(UINT32_MAX);
        int which = any(4);
        if (which & 1) {
            data[0].effective &= ~dropped;
            say("set %d", (int)syscall(SYS_capset, &head, data));
        }
        if (which & 2) {
            data[0].permitted &= ~dropped;
            data[0].effective &= ~dropped;
            data[0].inheritable = data[0].permitted & any(UINT32_MAX);
            say("set %d", (int)syscall(SYS_capset, &head, data));
        }
        if (any(3) == 0)
            say("bound %d", prctl(PR_CAPBSET_DROP, any(38)));
        if (any(3) == 0)
            say("ambient %d", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, any(38), 0, 0));
        say_capabilities();
        if (any(2))
            go_on(any(3));
        depth++;
        play(any(3));
        _exit(any(9));
    }
    ended(child, 0);
}

static void do_user(void) {
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        if (any(2))
            prctl(PR_SET_KEEPCAPS, 1);
        int which = any(3);
        if (which == 0)
            say("groups %d", setresgid(1234, 1234, 1234));
        if (which == 1)
            say("saved %d", setresuid(1234, 1234, 0));
        if (which == 2)
            say("all %d", setresuid(1234, 1234, 1234));
        say_capabilities();
        if (any(2))
            go_on(any(3));
        depth++;
        play(any(3));
        _exit(getuid() == 1234);
    }
    ended(child, 0);
}

static void do_exec(void) {
    int how = any(5);
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        char text[64];
        snprintf(text, sizeof text, "echo '%*sin a shell'; exit %u", depth * 2, "", any(100));
        char *words[] = {"sh", "-c", text, NULL}, *environment[] = {"A=b", "PATH=/bin", NULL};
        sigset_t set;
        if (any(2)) {
            sigemptyset(&set);
            sigaddset(&set, SIGUSR2);
            sigprocmask(SIG_BLOCK, &set, NULL);
        }
        if (how == 0)
            execve("/bin/sh", words, environment);
        if (how == 1) {
            int file = open("/bin/sh", O_PATH | O_CLOEXEC);
            syscall(SYS_execveat, file, "", words, environment, AT_EMPTY_PATH);
        }
        if (how == 2) {
            int file = memfd_create("script", 0);
            const char *script = "#!/bin/sh\necho from memory\nexit 9\n";
            MUST(write(file, script, strlen(script)) == (ssize_t)strlen(script));
            char *nothing[] = {"script", NULL};
            fexecve(file, nothing, environment);
        }
        if (how == 3)
            go_on(any(4));
        if (how == 4)
            execl("/nonexistent", "nonexistent", NULL);
        say("exec %d: errno %d", how, errno);
        _exit(77);
    }
    ended(child, 0);
}

static void *thread_that_forks(void *argument) {
    pid_t child = fork();
    if (child < 0)
        return argument;
    if (child == 0)
        _exit((int)(intptr_t)argument);
    int status;
    MUST(waitpid(child, &status, 0) == child);
    return (void *)(intptr_t)WEXITSTATUS(status);
}

static void *thread_that_ends_all(void *argument) {
    _exit((int)(intptr_t)argument);
}

static void *thread_that_executes(void *argument) {
    (void)argument;
    execl("/bin/sh", "sh", "-c", "exit 21", NULL);
    return NULL;
}

static void *thread_that_waits(void *argument) {
    for (;;)
        pause();
    return argument;
}

static void do_threads(void) {
    pthread_t threads[4];
    int how = any(4), count = 1 + any(4), code = any(100);
    if (how == 0) {
        for (int i = 0; i < count; i++)
            MUST(pthread_create(&threads[i], NULL, thread_that_forks, (void *)(intptr_t)(code + i)) == 0);
        for (int i = 0; i < count; i++) {
            void *got;
            MUST(pthread_join(threads[i], &got) == 0 && (int)(intptr_t)got == code + i);
        }
        say("%d forked", count);
        return;
    }
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        for (int i = 0; i < count - 1; i++)
            MUST(pthread_create(&threads[i], NULL, thread_that_waits, NULL) == 0);
        if (how == 1)
            pthread_create(&threads[3], NULL, thread_that_ends_all, (void *)(intptr_t)code);
        if (how == 2)
            pthread_create(&threads[3], NULL, thread_that_executes, NULL);
        if (how == 3)
            kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
    ended(child, 0);
}

static void do_memory_handed_over(void) {
    int sockets[2];
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    int number = any(1 << 30), seals = any(2);
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        if (any(4) == 0)
            unshare(CLONE_NEWUSER);
        int file = memfd_create("handed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        MUST(file >= 0 && ftruncate(file, 4096) == 0);
        int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        MUST(shared != MAP_FAILED);
        *shared = number;
        if (seals) {
            munmap(shared, 4096);
            MUST(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK) == 0);
        }
        char byte = 'x', room[CMSG_SPACE(sizeof(int))] = {0};
        struct iovec data = {&byte, 1};
        struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &file, sizeof file);
        MUST(sendmsg(sockets[1], &message, 0) == 1);
        MUST(read(sockets[1], &byte, 1) == 1);
        if (!seals)
            MUST(*shared == number + 1);
        _exit(6);
    }
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    MUST(recvmsg(sockets[0], &message, MSG_CMSG_CLOEXEC) == 1);
    int file;
    memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    int *shared = mmap(NULL, 4096, PROT_READ | (seals ? 0 : PROT_WRITE), seals ? MAP_PRIVATE : MAP_SHARED, file, 0);
    MUST(shared != MAP_FAILED && *shared == number);
    if (!seals)
        *shared = number + 1;
    MUST(write(sockets[0], "y", 1) == 1);
    ended(child, 0);
    munmap(shared, 4096);
    close(file);
    close(sockets[0]);
    close(sockets[1]);
}

static void do_futex(void) {
    int *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(word != MAP_FAILED);
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0)
            syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
        __atomic_store_n(word + 1, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, word + 1, FUTEX_WAKE, 1, NULL, NULL, 0);
        _exit(8);
    }
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    while (__atomic_load_n(word + 1, __ATOMIC_SEQ_CST) == 0)
        syscall(SYS_futex, word + 1, FUTEX_WAIT, 0, NULL, NULL, 0);
    ended(child, 0);
    munmap(word, 4096);
}

static void do_descriptor_of_process(void) {
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        for (;;)
            pause();
    }
    int file = syscall(SYS_pidfd_open, child, 0);
    MUST(file >= 0);
    struct pollfd asked = {file, POLLIN, 0};
    MUST(poll(&asked, 1, 0) == 0);
    MUST(syscall(SYS_pidfd_send_signal, file, any(2) ? SIGKILL : SIGTERM, NULL, 0) == 0);
    MUST(poll(&asked, 1, -1) == 1);
    siginfo_t info;
    MUST(waitid(P_PIDFD, file, &info, WEXITED) == 0 && info.si_pid == child);
    say("%d %d", info.si_code, info.si_status);
    close(file);
}

static void do_timer(void) {
    handled = 0;
    handle(SIGALRM, 0);
    struct itimerval soon = {{0, 0}, {0, 2000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    while (!handled)
        usleep(1000);
    signal(SIGALRM, SIG_DFL);
    say("rang");
}

static void do_filter(void) {
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 45),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {4, code};
        MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
        errno = 0;
        MUST(getpgid(0) == -1 && errno == 45);
        depth++;
        play(any(3));
        _exit(2);
    }
    ended(child, 0);
}

static void do_limits(void) {
    struct rlimit limit, now;
    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 20 + any(500);
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0 && getrlimit(RLIMIT_NOFILE, &now) == 0);
    MUST(now.rlim_cur == limit.rlim_cur);
    int last = -1, files[600], count = 0;
    while (count < 600 && (last = dup(0)) >= 0)
        files[count++] = last;
    say("%d files", count);
    while (count)
        close(files[--count]);
}

// A child that asks to be traced: its stops, a word of its memory, its registers.
static void do_trace(void) {
    static volatile long secret = 4711;
    int status;
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        MUST(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
        secret = 815;
        raise(SIGSTOP);
        raise(SIGUSR1);
        _exit(31);
    }
    MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    errno = 0;
    long word = ptrace(PTRACE_PEEKDATA, child, &secret, 0);
    MUST(errno || word == 815);
    say("errno %d", errno);
    MUST(ptrace(PTRACE_CONT, child, 0, 0) == 0);
    MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1);
    MUST(ptrace(PTRACE_CONT, child, 0, 0) == 0);
    ended(child, 0);
}

static void do_seize(void) {
    int status;
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        for (;;)
            pause();
    }
    if (ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL) == 0) {
        MUST(ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0);
        MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        MUST(ptrace(PTRACE_DETACH, child, 0, 0) == 0);
    } else {
        say("errno %d", errno);
    }
    kill(child, SIGKILL);
    ended(child, 0);
}

static void do_transfer(void) {
    static volatile long there = 1;
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        there = 99;
        raise(SIGSTOP);
        _exit(there == 99 ? 14 : 15);
    }
    int status;
    MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    long here = 0;
    struct iovec mine = {&here, sizeof here}, theirs = {(void *)&there, sizeof here};
    if (process_vm_readv(child, &mine, 1, &theirs, 1, 0) == sizeof here) {
        MUST(here == 99);
    } else {
        say("errno %d", errno);
    }
    kill(child, SIGCONT);
    ended(child, 0);
}

static void do_rest(void) {
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(page != MAP_FAILED);
    page[0] = 5;
    switch (any(5)) {
    case 0:
        MUST(madvise(page, 4096, MADV_MERGEABLE) == 0 || errno == EINVAL);
        break;
    case 1:
        MUST(madvise(page, 4096, MADV_DONTDUMP) == 0);
        break;
    case 2:
        MUST(mprotect(page, 4096, PROT_READ) == 0);
        break;
    case 3: {
        unsigned long context = 0;
        int done = syscall(SYS_io_setup, 8, &context);
        if (done == 0)
            syscall(SYS_io_destroy, context);
        break;
    }
    default:
        say("landlock %d", (int)syscall(444, NULL, 0, 1));
    }
    pid_t child = fork();
    LEAVE_UNLESS(child);
    if (child == 0) {
        unsigned char there = 0;
        _exit(mincore(page, 4096, &there) == 0 ? page[0] : 44);
    }
    ended(child, 0);
    munmap(page, 8192);
}

static const struct {
    const char *name;
    void (*act)(void);
} OPERATIONS[] = {
    {"fork", do_fork}, {"vfork", do_vfork}, {"clone", do_clone}, {"namespaces", do_namespaces}, {"setns", do_setns},
    {"signal", do_signal}, {"stop", do_stop}, {"nozombies", do_no_zombies}, {"sigchld", do_child_signal},
    {"orphan", do_orphan}, {"deathsignal", do_death_signal}, {"session", do_session}, {"prctl", do_prctl},
    {"capabilities", do_capabilities}, {"user", do_user}, {"exec", do_exec}, {"threads", do_threads},
    {"handed", do_memory_handed_over}, {"futex", do_futex}, {"pidfd", do_descriptor_of_process}, {"timer", do_timer},
    {"filter", do_filter}, {"limits", do_limits}, {"trace", do_trace}, {"seize", do_seize}, {"transfer", do_transfer},
    {"rest", do_rest},
};
#define COUNT (sizeof OPERATIONS / sizeof *OPERATIONS)

static void play(int length) {
    if (depth > 3)
        return;
    while (length-- > 0 && operations_left-- > 0) {
        unsigned which = any(COUNT);
        const char *only = getenv("ONLY");
        while (only && !strstr(only, OPERATIONS[which].name))
            which = any(COUNT);
        current = OPERATIONS[which].name;
        OPERATIONS[which].act();
    }
}

int main(int count, char **arguments) {
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    operations_left = 12;
    alarm(0);
    if (count == 5 && strcmp(arguments[1], "--exec") == 0 && length > 0) {
        state = strtoull(arguments[2], NULL, 10);
        depth = atoi(arguments[3]) + 1;
        play(atoi(arguments[4]));
        return 40 + any(10);
    }
    if (count != 3 || length <= 0)
        return 2;
    uint64_t first = strtoull(arguments[1], NULL, 10), seeds = strtoull(arguments[2], NULL, 10);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        char line[64];
        int used = snprintf(line, sizeof line, "seed %llu\n", (unsigned long long)seed), status;
        if (write(1, line, used) != used)
            return 3;
        pid_t child = fork();
        if (child == 0) {
            state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
            play(2 + any(5));
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0) {
            printf("seed %llu ended with %x\n", (unsigned long long)seed, status);
            fflush(stdout);
        }
    }
    puts("ok");
    return 0;
}
