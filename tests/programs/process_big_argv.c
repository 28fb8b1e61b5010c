// build: -O1
// Arguments and environment near the kernel's limits: two thousand arguments, one of 120 kB, a big
// environment, E2BIG beyond, an empty argv.
#include "check.h"
#include <sys/wait.h>
enum { MANY = 2000 };
int main(int argc, char **argv)
{
    if (argc > 1) {
        unsigned long sum = 0;
        for (int i = 0; i < argc; i++) sum = sum * 31 + strlen(argv[i]);
        printf("%d arguments, %lx, BIG %zu\n", argc, sum, strlen(getenv("BIG")));
        return 0;
    }
    char exe[4096] = {0};
    CHECK(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    static char *words[MANY + 2], *env[] = {NULL, NULL};
    for (int i = 0; i < MANY; i++) CHECK(asprintf(&words[i], "argument-%d", i * 7919) > 0);
    char *large = malloc(120001);
    memset(large, 'x', 120000), large[120000] = 0;
    words[1000] = large;
    char *big = malloc(100005);
    memset(big, 'B', 100004), memcpy(big, "BIG=", 4), big[100004] = 0;
    env[0] = big;
    pid_t pid = fork();
    if (!pid) execve(exe, words, env), _exit(9);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    char *huge = malloc(200001);
    memset(huge, 'y', 200000), huge[200000] = 0;
    char *too_large[] = {"a", huge, NULL};
    CHECK(execve(exe, too_large, env) == -1);
    printf("one argument of 200 kB: %s\n", strerrorname_np(errno));
    return ok();
}
