// build: -O1
// Clocks of every kind in loops: each value is different every time.
#include "check.h"
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

int main(void)
{
    unsigned long long trace = 0;
    for (int i = 0; i < 500; i++) {
        struct timeval now;
        MUST(gettimeofday(&now, NULL));
        trace = trace * 1000003 + (unsigned long)now.tv_usec;
    }
    printf("gettimeofday %llx, time %ld\n", trace, (long)time(NULL));
    clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
                          CLOCK_BOOTTIME, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        struct timespec now;
        MUST(clock_gettime(clocks[i], &now));
        printf("clock %d: %ld.%09ld\n", (int)clocks[i], (long)now.tv_sec, now.tv_nsec);
    }
    struct tms spent;
    clock_t ticks = times(&spent);
    printf("times %ld, %ld, clock %ld\n", (long)ticks, (long)spent.tms_utime, (long)clock());
    return ok();
}
