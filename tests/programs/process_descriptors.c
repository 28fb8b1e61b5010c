// build: -O1
// The guest closes and replaces every descriptor it can reach: close_range of everything, dup2 over
// high numbers, closing 0..1023 by hand; the tool's own descriptors must survive it, and after it
// fork, exec and new threads still work.
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
static void still_alive(const char *after)
{
    pid_t pid = fork();
    if (!pid) execl("/bin/sh", "sh", "-c", "exit 3", NULL), _exit(99);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
    dprintf(1, "after %s\n", after);
}
int main(void)
{
    for (int fd = 3; fd < 1024; fd++) close(fd);
    still_alive("close");
    MUST(syscall(SYS_close_range, 3, ~0U, 0));
    still_alive("close_range");
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int made = 0, top = limit.rlim_cur > 4096 ? 4096 : (int)limit.rlim_cur;
    for (int fd = 3; fd < top; fd++) made += dup2(1, fd) == fd;
    dprintf(1, "dup2 made %s\n", made > top - 300 ? "nearly all" : "few");
    still_alive("dup2");
    MUST(syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC));
    still_alive("close_range with cloexec");
    MUST(syscall(SYS_close_range, 3, ~0U, 0));
    CHECK(close(3) == -1 && errno == EBADF);
    CHECK(close(1000) == -1 && errno == EBADF);
    limit.rlim_cur = 10;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    int last = -1, fd;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) last = fd;
    dprintf(1, "with a limit of 10 the last is %d, then %s\n", last, strerrorname_np(errno));
    MUST(syscall(SYS_close_range, 3, ~0U, 0));
    still_alive("a low limit");
    return ok();
}
