// build: -O1
// The kernel itself writes new code: read() and pread() into an executable page that has run, also
// across two such pages, recv, and a pipe; the engine's write protection must not show as EFAULT.
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
    return ok();
}
