// build: -O1
// build: -O1 -static
// mmap in its forms: fixed, fixed-noreplace, 32-bit, hints, file offsets, beyond the end, munmap
// that makes holes, errors; the engine owns the map, so every answer must be as the kernel's.
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE };
static int resident(void *p)
{
    unsigned char v;
    return mincore(p, PAGE, &v) == 0;
}
int main(void)
{
    char *a = mmap(NULL, 16 * PAGE, RW, ANON, -1, 0);
    CHECK(a != MAP_FAILED && (uintptr_t)a % PAGE == 0);
    memset(a, 1, 16 * PAGE);
    for (int i = 1; i < 16; i += 2) MUST(munmap(a + i * PAGE, PAGE));
    for (int i = 0; i < 16; i++) CHECK(resident(a + i * PAGE) == (i % 2 == 0));
    CHECK(mmap(a + PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == a + PAGE);
    CHECK(mmap(a, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    CHECK(a[0] == 1);
    CHECK(mmap(a, PAGE, RW, ANON | MAP_FIXED, -1, 0) == a && a[0] == 0);
    CHECK(mmap(a + 3 * PAGE, PAGE, RW, ANON, -1, 0) != MAP_FAILED);
    char *low = mmap(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0);
    CHECK(low != MAP_FAILED && (uintptr_t)low < 0x80000000);
    char *hint = (char *)0x200000000;
    char *got = mmap(hint, PAGE, RW, ANON, -1, 0);
    CHECK(got == hint);
    CHECK(mmap(hint, PAGE, RW, ANON, -1, 0) != hint);
    CHECK(mmap(NULL, 0, RW, ANON, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap((void *)1, PAGE, RW, ANON | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, PAGE, RW, MAP_PRIVATE, 999, 0) == MAP_FAILED && errno == EBADF);
    CHECK(mmap(NULL, 1ull << 60, RW, ANON, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(munmap(a + 1, PAGE) == -1 && errno == EINVAL);
    MUST(munmap((void *)0x300000000, PAGE));                    /* nothing there: no error */
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 3 * PAGE; i++) CHECK(write(fd, &(char){(char)(i / PAGE + 'a')}, 1) == 1);
    char *shared = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, PAGE);
    char *private = mmap(NULL, 3 * PAGE, RW, MAP_PRIVATE, fd, 0);
    CHECK(shared[0] == 'b' && private[2 * PAGE] == 'c');
    private[PAGE] = 'P';
    CHECK(shared[0] == 'b');
    shared[1] = 'S';
    char back[2];
    CHECK(pread(fd, back, 2, PAGE) == 2 && back[0] == 'b' && back[1] == 'S');
    MUST(msync(shared, 2 * PAGE, MS_SYNC));
    CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, open("file", O_RDONLY), 0) == MAP_FAILED && errno == EACCES);
    char *big = mmap(NULL, 1ull << 36, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    CHECK(big != MAP_FAILED);
    MUST(mprotect(big + (1ull << 35), PAGE, RW));
    big[1ull << 35] = 9;
    MUST(munmap(big, 1ull << 36));
    char *grown = mmap(NULL, 4 * PAGE, RW, ANON | MAP_GROWSDOWN | MAP_STACK, -1, 0);
    CHECK(grown != MAP_FAILED);
    grown[0] = 1;
    char *populated = mmap(NULL, 64 * PAGE, RW, ANON | MAP_POPULATE, -1, 0);
    CHECK(populated != MAP_FAILED && populated[63 * PAGE] == 0);
    return ok();
}
