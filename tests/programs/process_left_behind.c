// build: -O1
// A daemon that outlives the program that started it, and so whoever observes that program. It goes
// on working, long enough to fill any buffer; has children, which work too; and executes a program,
// itself. Whoever reads its output sees all of it: nothing of this may wait for an observer.
#include "check.h"
#include <sys/wait.h>
#include <time.h>

static volatile unsigned cells[4096];

static unsigned work(void)
{
    for (unsigned i = 0; i < 4000000; i++) cells[i * 7 % 4096] += i;
    return cells[42];
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void live_on(pid_t parent)
{
    MUST(setsid());
    while (getppid() == parent) pause_ms(5);
    pause_ms(200);
    printf("alone %u\n", work());
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        printf("child %u\n", work());
        fflush(stdout);
        _exit(7);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    execl("/proc/self/exe", "process_left_behind", "again", NULL);
    CHECK(!"execl came back");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        printf("%s %u\n", argv[1], work());
        return ok();
    }
    puts("started");
    fflush(stdout);
    pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (!pid) live_on(parent);
    return 0;
}
