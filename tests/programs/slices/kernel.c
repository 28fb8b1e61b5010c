/* System calls: their answers are made from what they are given. `chosen` makes what is given, so it is
 * in the slice of every program here but those named `_not`. */
#include "slices.h"
#define OPEN 2
#define READ 0
#define CLOSE 3
#define LSEEK 8
#define PIPE 22
#define WRITE 1
HELPER u64 chosen(u64 x) { u64 r = x * 5 + 3; UNKNOWN(r); return r; }

/* A file that is not there: its name decides. */
PROGRAM missing(u64 x) {
    volatile char path[16];
    path[0] = '/';
    path[1] = 'a' + chosen(x) % 20;
    path[2] = '!';
    path[3] = 0;
    return call3(OPEN, (long)path, 0, 0);
}
/* One that is. */
PROGRAM there(u64 x) {
    volatile char path[16] = "/dev/";
    path[5] = 'n' + (chosen(x) >> 63);
    path[6] = 'u', path[7] = 'l', path[8] = 'l', path[9] = 0;
    long fd = call3(OPEN, (long)path, 0, 0);
    call3(CLOSE, fd, 0, 0);
    return fd;
}
/* A number. */
PROGRAM offset(u64 x) {
    long fd = call3(OPEN, (long)"/proc/self/maps", 0, 0);
    long at = call3(LSEEK, fd, chosen(x) & 1023, 0);
    call3(CLOSE, fd, 0, 0);
    return at;
}
/* What is read is not made from how much could have been. */
PROGRAM brought_in_not(u64 x) {
    int ends[2];
    call3(PIPE, (long)ends, 0, 0);
    u64 sent = 4711, got = 0;
    call3(WRITE, ends[1], (long)&sent, 8);
    call3(READ, ends[0], (long)&got, 8 + (chosen(x) >> 63));
    call3(CLOSE, ends[0], 0, 0);
    call3(CLOSE, ends[1], 0, 0);
    return got;
}
#define LIST(P) P(missing) P(there) P(offset) P(brought_in_not)
RUN(LIST)
