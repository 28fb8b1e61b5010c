// build: -O1
// Partial reads: a child writes pieces of random length to a pipe and a socket, with pauses; the
// lengths that reads return are printed.
#include "check.h"
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void feed(int descriptor)
{
    char buffer[3000];
    for (int i = 0; i < 20; i++) {
        unsigned short length;
        CHECK(getrandom(&length, sizeof length, 0) == sizeof length);
        size_t left = length % sizeof buffer + 1;
        memset(buffer, 'a' + i, left);
        CHECK(write(descriptor, buffer, left) == (ssize_t)left);
        if (i % 4 == 0) usleep(300);
    }
    _exit(0);
}

static void drain(const char *name, int descriptor)
{
    char buffer[1000];
    unsigned long long trace = 0;
    long sum = 0, reads = 0;
    for (ssize_t got; (got = read(descriptor, buffer, sizeof buffer)) != 0; reads++) {
        MUST(got);
        sum += got;
        trace = trace * 1000003 + (unsigned long)got * 256 + (unsigned char)buffer[got - 1];
    }
    printf("%s %ld bytes in %ld reads, trace %llx\n", name, sum, reads, trace);
}

int main(void)
{
    int ends[2];
    for (int kind = 0; kind < 2; kind++) {
        MUST(kind ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends));
        pid_t child = fork();
        MUST(child);
        if (child == 0) feed(ends[1]);
        close(ends[1]);
        drain(kind ? "socket" : "pipe", ends[0]);
        close(ends[0]);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return ok();
}
