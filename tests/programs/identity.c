// build: -O1
// build: -O1 -static
// args: "" "a b" -- --help --rules -x
// argv, environment, auxv, working directory, open descriptors, umask, limits: exactly as native.
#include "check.h"
#include <dirent.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
extern char **environ;
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) printf("[%s]\n", argv[i]);
    for (char **e = environ; *e; e++) printf("{%s}\n", *e);
    char cwd[PATH_MAX], exe[PATH_MAX];
    CHECK(getcwd(cwd, sizeof cwd));
    printf("cwd %s\n", cwd);
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    CHECK(n > 0);
    exe[n] = 0;
    CHECK(strcmp(exe, argv[0]) == 0);
    CHECK(strcmp((char *)getauxval(AT_EXECFN), argv[0]) == 0);
    CHECK(getauxval(AT_PAGESZ) == 4096 && getauxval(AT_UID) == getuid());
    CHECK(getauxval(AT_SECURE) == 0 && getauxval(AT_RANDOM) != 0);
    printf("program_invocation_name %s\n", program_invocation_name == argv[0] ? "argv[0]" : "other");
    int highest = 0;                         // nothing of the tool's below 200
    for (int fd = 0; fd < 200; fd++)
        if (lseek(fd, 0, SEEK_CUR) != -1) highest = fd;
    struct stat st;
    int open_count = 0;
    for (int fd = 0; fd < 200; fd++) open_count += fstat(fd, &st) == 0;
    printf("open below 200: %d highest seekable %d\n", open_count, highest);
    int fresh = dup(0);
    printf("lowest free descriptor %d\n", fresh);
    mode_t mask = umask(0);
    printf("umask %o\n", mask);
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    printf("descriptors %lu/%lu\n", (long)limit.rlim_cur, (long)limit.rlim_max);
    MUST(getrlimit(RLIMIT_STACK, &limit));
    printf("stack %lu\n", (long)limit.rlim_cur);
    CHECK(getpid() > 1 && getppid() > 0);
    return ok();
}
