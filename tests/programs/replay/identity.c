// build: -O1 -pthread
// Who and where: numbers of processes and threads, processor, load, resource use, limits, names.
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

static void *say(void *unused)
{
    unsigned processor = 0, node = 0;
    MUST(getcpu(&processor, &node));
    char text[120];
    int length = snprintf(text, sizeof text, "thread %ld at %p on %u\n", syscall(SYS_gettid), (void *)pthread_self(), processor);
    CHECK(write(1, text, (size_t)length) == length);
    return unused;
}

int main(void)
{
    printf("pid %d parent %d session %d group %d\n", getpid(), getppid(), getsid(0), getpgrp());
    fflush(stdout);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, say, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    struct utsname names;
    MUST(uname(&names));
    struct sysinfo system;
    MUST(sysinfo(&system));
    struct rusage use;
    MUST(getrusage(RUSAGE_SELF, &use));
    cpu_set_t set;
    MUST(sched_getaffinity(0, sizeof set, &set));
    printf("%s %s up %ld free %lu\n", names.release, names.nodename, system.uptime, system.freeram);
    printf("used %ld.%06ld faults %ld switches %ld on %d processors\n", (long)use.ru_utime.tv_sec,
           (long)use.ru_utime.tv_usec, use.ru_minflt, use.ru_nvcsw, CPU_COUNT(&set));
    for (int which = 0; which < RLIMIT_NLIMITS; which++) {
        struct rlimit limit;
        MUST(getrlimit((__rlimit_resource_t)which, &limit));
        printf("limit %d: %lu %lu\n", which, (unsigned long)limit.rlim_cur, (unsigned long)limit.rlim_max);
    }
    struct rlimit files = {64, 64};
    MUST(setrlimit(RLIMIT_NOFILE, &files));
    int last = -1, next;
    while ((next = dup(0)) >= 0) last = next;
    CHECK(errno == EMFILE && last == 63);
    return ok();
}
