// rules: memory
// System calls are given more than there is: they refuse, or do less, and the program goes on.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
enum { PAGE = 4096 };

static char *map(void) {
    char *pages = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages, PAGE);
    mprotect(pages + 2 * PAGE, PAGE, PROT_NONE);
    return pages + PAGE;
}

int main(void) {
    int zeros = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY), ends[2];
    char *buffer = map();
#ifdef FIXED
    long size = PAGE;
#else
    long size = PAGE + 8;
#endif
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    struct iovec pieces[2] = {{buffer, 10}, {buffer + 10, size - 10}};
    read(zeros, buffer, size); // FINDS unaddressable-buffer
    write(null, buffer, size); // FINDS unaddressable-buffer
    send(ends[0], buffer, size, 0); // FINDS unaddressable-buffer
    readv(zeros, pieces, 2); // FINDS unaddressable-buffer
    return 0;
}
