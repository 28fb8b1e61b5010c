// build: -O1
// A child sends signals as fast as it can; the handler notes how far a busy loop had come.
#include "check.h"
#include <signal.h>
#include <sys/wait.h>

static volatile unsigned long progress, seen;
static volatile unsigned long long trace;

static void note(int number)
{
    trace = trace * 1000003 + progress * 64 + (unsigned)number;
    seen++;
}

int main(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGUSR1, &action, NULL));
    MUST(sigaction(SIGUSR2, &action, NULL));
    pid_t parent = getpid(), child = fork();
    MUST(child);
    if (child == 0) {
        for (int i = 0; i < 300; i++) kill(parent, i % 3 ? SIGUSR1 : SIGUSR2);
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, WNOHANG) == 0)
        for (int i = 0; i < 1000; i++) progress = progress + 1;
    CHECK(status == 0 && seen > 0 && seen <= 300);
    printf("%lu signals, progress %lu, trace %llx\n", seen, progress, trace);
    return ok();
}
