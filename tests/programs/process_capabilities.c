// build: -O1
// Programs that gain capabilities when they are executed, as root does that has given some away:
// the kernel then forgets that addresses are not to be random. In the process itself, in a child,
// and in a child's child. Without the right to do so, a user namespace gives it.
#include "check.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct __user_cap_data_struct now[2];

static void capabilities(int call, unsigned drop)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    now[0].effective &= ~drop, now[0].permitted &= ~drop, now[0].inheritable = 0;
    MUST(syscall(call, &head, now));
}

static void put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    MUST(file);
    CHECK(write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
}

int main(int count, char **arguments)
{
    int depth = count > 1 ? atoi(arguments[1]) : 0;
    if (depth == 0 && geteuid() != 0) {
        char map[40];
        snprintf(map, sizeof map, "0 %d 1\n", geteuid());
        if (unshare(CLONE_NEWUSER)) return ok();
        put("/proc/self/uid_map", map);
    }
    capabilities(SYS_capget, 0);
    unsigned had = now[0].permitted;
    printf("depth %d: may change the root %d\n", depth, had >> CAP_SYS_CHROOT & 1);
    fflush(stdout);
    if (depth == 4) return ok();
    capabilities(SYS_capset, 1u << CAP_SYS_CHROOT | 1u << CAP_MKNOD);
    capabilities(SYS_capget, 0);
    CHECK(!(now[0].permitted >> CAP_SYS_CHROOT & 1));
    char next[12];
    snprintf(next, sizeof next, "%d", depth + 1);
    pid_t child = depth % 2 ? fork() : 0;
    if (child == 0) {
        execl("/proc/self/exe", "again", next, NULL);
        return 9;
    }
    int status;
    MUST(waitpid(child, &status, 0));
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}
