// build: -O1
// poll, ppoll, select and pselect with time limits that are nearly always just too short.
#include "check.h"
#include <poll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>

int main(void)
{
    int ends[2], timeouts = 0, bytes = 0;
    char byte, shown[200];
    MUST(pipe(ends));
    pid_t child = fork();
    MUST(child);
    if (child == 0) {
        for (int i = 0; i < 40; i++) {
            char letter = (char)('a' + i % 26);
            CHECK(write(ends[1], &letter, 1) == 1);
            usleep(500);
        }
        _exit(0);
    }
    close(ends[1]);
    for (int round = 0; bytes < 40; round++) {
        struct pollfd entry = {ends[0], POLLIN, 0};
        struct timespec short_time = {0, 300000};
        struct timeval select_time = {0, 300};
        fd_set set;
        FD_ZERO(&set);
        FD_SET(ends[0], &set);
        int ready = 0;
        switch (round % 4) {
        case 0: ready = poll(&entry, 1, 0); break;
        case 1: ready = ppoll(&entry, 1, &short_time, NULL); break;
        case 2: ready = select(ends[0] + 1, &set, NULL, NULL, &select_time); break;
        case 3: ready = pselect(ends[0] + 1, &set, NULL, NULL, &short_time, NULL); break;
        }
        MUST(ready);
        if (ready == 0) {
            timeouts++;
            continue;
        }
        CHECK(read(ends[0], &byte, 1) == 1);
        shown[bytes] = (char)(byte - 32 * (round % 2));
        bytes++;
        if (round % 4 == 2) timeouts += (int)select_time.tv_usec;
    }
    CHECK(waitpid(child, NULL, 0) == child);
    printf("%d after %d: %.*s\n", bytes, timeouts, bytes, shown);
    return ok();
}
