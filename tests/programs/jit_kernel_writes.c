// build: -O1
// The kernel itself writes new code: read() and pread() into an executable page that has run, also
// across two such pages, recv, and a pipe; the engine's write protection must show neither as EFAULT
// nor as a short answer where a buffer begins on an ordinary page and goes on over code.
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
enum { PAGE = 4096 };
typedef int (*function)(void);
static unsigned char code[6] = {0xb8, 0, 0, 0, 0, 0xc3};
static unsigned char *with(int value) { memcpy(code + 1, &value, 4); return code; }
int main(void)
{
    unsigned char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, with(1), 6), memcpy(page + PAGE, with(2), 6);
    CHECK(((function)(void *)page)() == 1 && ((function)(void *)(page + PAGE))() == 2);
    int p[2], s[2];
    MUST(pipe(p));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    for (int i = 10; i < 60; i++) {
        CHECK(write(p[1], with(i), 6) == 6 && read(p[0], page, 6) == 6);
        CHECK(((function)(void *)page)() == i);
        CHECK(send(s[1], with(i + 1), 6, 0) == 6 && recv(s[0], page + PAGE, 6, 0) == 6);
        CHECK(((function)(void *)(page + PAGE))() == i + 1);
        unsigned char *across = page + PAGE - 3;
        CHECK(write(p[1], with(i + 2), 6) == 6);
        struct iovec parts[2] = {{across, 2}, {across + 2, 4}};
        CHECK(readv(p[0], parts, 2) == 6);
        CHECK(((function)(void *)across)() == i + 2);
    }
    int fd = open("code", O_CREAT | O_RDWR, 0600);
    static unsigned char whole[2 * PAGE];
    memset(whole, 0xc3, sizeof whole);
    memcpy(whole, with(4242), 6);
    CHECK(write(fd, whole, sizeof whole) == sizeof whole);
    CHECK(pread(fd, page, sizeof whole, 0) == sizeof whole);
    CHECK(((function)(void *)page)() == 4242);
    unsigned char *all = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 8; i++) {
        // Data on the first page, code on the second.
        memcpy(all + PAGE, with(i), 6);
        CHECK(((function)(void *)(all + PAGE))() == i);
        unsigned char *start = all + PAGE - 100;
        memset(whole, 'x', sizeof whole);
        memcpy(whole + 100, with(i + 100), 6);
        struct iovec parts[2] = {{start, 50}, {start + 50, 250}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        if (i < 4) CHECK(write(p[1], whole, 300) == 300);
        else if (i < 6) CHECK(send(s[1], whole, 300, 0) == 300);
        switch (i) {
        case 0: CHECK(read(p[0], start, 300) == 300); break;
        case 1: CHECK(readv(p[0], parts, 2) == 300); break;
        case 2: CHECK(read(p[0], start, 4096) == 300); break;
        case 3: CHECK(read(p[0], start, 200) == 200 && read(p[0], start + 200, 100) == 100); break;
        case 4: CHECK(recv(s[0], start, 300, 0) == 300); break;
        case 5: CHECK(recvmsg(s[0], &message, 0) == 300); break;
        case 6: CHECK(pwrite(fd, whole, 300, 0) == 300 && pread(fd, start, 300, 0) == 300); break;
        case 7: CHECK(preadv(fd, parts, 2, 0) == 300); memcpy(all + PAGE, with(i + 100), 6); break;
        }
        CHECK(start[0] == 'x' && start[299] == 'x');
        CHECK(((function)(void *)(all + PAGE))() == i + 100);
    }
    return ok();
}
