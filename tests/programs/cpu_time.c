// build: -O1
// build: -O1 -static
// Time: rdtsc and rdtscp never run backwards, the clocks advance and agree, with or without a vdso;
// getcpu, time, gettimeofday, clock_getres; sleeping takes at least as long as asked.
#include "check.h"
#include <sched.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <x86intrin.h>
static double seconds(clockid_t id)
{
    struct timespec t;
    MUST(clock_gettime(id, &t));
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
int main(void)
{
    uint64_t last = 0;
    for (int i = 0; i < 5000; i++) {
        unsigned aux;
        uint64_t now = i % 2 ? __rdtsc() : __rdtscp(&aux);
        CHECK(now > last);
        last = now;
    }
    double before = seconds(CLOCK_MONOTONIC);
    uint64_t tsc = __rdtsc();
    struct timespec nap = {0, 20000000};
    MUST(nanosleep(&nap, NULL));
    double after = seconds(CLOCK_MONOTONIC);
    CHECK(after - before >= 0.0199 && __rdtsc() - tsc > 1000000);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) == 0);
    CHECK(seconds(CLOCK_MONOTONIC) - after >= 0.0199);
    struct timeval tv;
    gettimeofday(&tv, NULL);
    CHECK(labs((long)tv.tv_sec - (long)time(NULL)) <= 1);
    CHECK(seconds(CLOCK_REALTIME) > 1.6e9 && seconds(CLOCK_BOOTTIME) >= seconds(CLOCK_MONOTONIC) - 1);
    CHECK(seconds(CLOCK_PROCESS_CPUTIME_ID) > 0 && seconds(CLOCK_THREAD_CPUTIME_ID) > 0);
    struct timespec resolution;
    MUST(clock_getres(CLOCK_MONOTONIC, &resolution));
    CHECK(clock_gettime(12345, &resolution) == -1 && errno == EINVAL);
    unsigned cpu = 99999, node = 99999;
    CHECK(syscall(SYS_getcpu, &cpu, &node, NULL) == 0 && cpu < 4096 && node < 1024);
    CHECK(sched_getcpu() >= 0);
    cpu_set_t set;
    MUST(sched_getaffinity(0, sizeof set, &set));
    CHECK(CPU_COUNT(&set) >= 1);
    return ok();
}
