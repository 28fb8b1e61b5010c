// build: -O1
// posix_spawn with attributes and file actions, its ENOENT and EACCES returned to the caller (it
// shares memory with the child until the exec), system(), popen in both directions.
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
extern char **environ;
static int reap(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    pid_t pid = -5;
    char *words[] = {"sh", "-c", "echo spawned; read line; echo $line; exit 4", NULL};
    CHECK(posix_spawn(&pid, "/no/such", NULL, NULL, words, environ) == ENOENT);
    CHECK(posix_spawn(&pid, "/etc/passwd", NULL, NULL, words, environ) == EACCES);
    CHECK(posix_spawnp(&pid, "no-such-command", NULL, NULL, words, environ) == ENOENT);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "input", O_RDONLY, 0);
    CHECK(posix_spawnp(&pid, "sh", &actions, NULL, words, environ) == ENOENT);
    int fd = open("input", O_CREAT | O_WRONLY, 0600);
    CHECK(write(fd, "a line\n", 7) == 7);
    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attr, &all);
    CHECK(posix_spawnp(&pid, "sh", &actions, &attr, words, environ) == 0);
    printf("exit %d\n", reap(pid));
    char *killed[] = {"sh", "-c", "kill -9 $$", NULL};
    CHECK(posix_spawnp(&pid, "sh", NULL, NULL, killed, environ) == 0);
    printf("killed %d\n", reap(pid));
    printf("system %d\n", WEXITSTATUS(system("exit 12")));
    printf("system of nothing %d\n", WEXITSTATUS(system("no-such-command 2>/dev/null")));
    FILE *from = popen("printf 'one\\ntwo\\n'", "r");
    char line[100];
    while (fgets(line, sizeof line, from)) printf("read %s", line);
    printf("pclose %d\n", WEXITSTATUS(pclose(from)));
    FILE *to = popen("tr a-z A-Z", "w");
    fputs("shouted\n", to);
    printf("pclose %d\n", pclose(to));
    for (int i = 0; i < 20; i++) {
        char *quick[] = {"true", NULL};
        CHECK(posix_spawnp(&pid, "true", NULL, NULL, quick, environ) == 0 && reap(pid) == 0);
    }
    return ok();
}
