// build: -O1 -pthread
// epoll over eventfds and pipes that several threads write to; what each wait returns is printed.
#include "check.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int descriptors[4];

static void *writer(void *argument)
{
    int which = (int)(long)argument;
    for (uint64_t i = 1; i <= 25; i++) {
        CHECK(write(descriptors[which], &i, sizeof i) == sizeof i);
        if (i % 3 == 0) usleep(100);
    }
    return NULL;
}

int main(void)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    MUST(set);
    for (int i = 0; i < 4; i++) {
        descriptors[i] = eventfd(0, i == 3 ? EFD_SEMAPHORE : 0);
        MUST(descriptors[i]);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (unsigned)i};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, descriptors[i], &event));
    }
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, writer, (void *)i) == 0);
    uint64_t sums[4] = {0}, reads = 0, waits = 0;
    unsigned long long trace = 0;
    while (sums[0] + sums[1] + sums[2] + sums[3] < 4 * 325) {
        struct epoll_event ready[3];
        int count = epoll_wait(set, ready, 3, 1000);
        CHECK(count >= 0);
        waits++;
        for (int i = 0; i < count; i++, reads++) {
            uint64_t value;
            unsigned which = ready[i].data.u32;
            CHECK(read(descriptors[which], &value, sizeof value) == sizeof value);
            sums[which] += value;
            trace = trace * 1000003 + which * 1000 + value;
        }
    }
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("%lu waits %lu reads trace %llx\n", (unsigned long)waits, (unsigned long)reads, trace);
    return ok();
}
