// build: -O2 -pthread
// A child floods its parent with ten thousand queued signals while the parent is in and out of
// system calls and computation: none may be lost, none may disturb a result.
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
static volatile sig_atomic_t received;
static volatile int64_t sum;
static void handler(int s, siginfo_t *si, void *uc)
{
    (void)s, (void)uc;
    received++;
    sum += si->si_value.sival_int;
}
int main(void)
{
    enum { MANY = 10000 };
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &act, NULL);
    pid_t parent = getpid(), pid = fork();
    if (!pid) {
        for (int i = 1; i <= MANY; i++) {
            union sigval v = {.sival_int = i};
            while (sigqueue(parent, SIGRTMIN, v) && errno == EAGAIN) usleep(100);
        }
        _exit(0);
    }
    uint32_t crc = 0;
    do { /* at least once: all signals may have come before the first look */
        uint32_t x = 0xffffffff;
        for (int i = 0; i < 1000; i++) {
            x ^= (uint32_t)i;
            for (int k = 0; k < 8; k++) x = (x >> 1) ^ (0xedb88320u & -(x & 1));
        }
        CHECK(crc == 0 || crc == x);
        crc = x;
        CHECK(getppid() > 0);
    } while (received < MANY);
    int status;
    while (waitpid(pid, &status, 0) < 0) CHECK(errno == EINTR);
    CHECK(status == 0);
    printf("%d signals, sum %ld, crc %08x\n", (int)received, (long)sum, crc);
    return ok();
}
