// build: -O1
// Children that are killed outright at any moment of their lives: before they execute another program,
// while they do, and while that one runs.
#include "check.h"
#include <signal.h>
#include <sys/random.h>
#include <sys/wait.h>

int main(void)
{
    for (int round = 0; round < 8; round++) {
        unsigned short delay;
        MUST(getrandom(&delay, sizeof delay, 0));
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/sleep", "sleep", "100", NULL);
            return 1;
        }
        usleep(delay / 4);
        MUST(kill(child, SIGKILL));
        int status;
        MUST(waitpid(child, &status, 0));
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    puts("ok");
}
