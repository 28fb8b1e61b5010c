// build: -O1
// mremap: shrink, grow in place, move, fixed, DONTUNMAP, refusal; brk up, down and over old contents;
// realloc of large blocks, which glibc makes with mremap.
#include "check.h"
#include <sys/mman.h>
#include <sys/syscall.h>
enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE };
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
int main(void)
{
    char *a = mmap(NULL, 8 * PAGE, RW, ANON, -1, 0);
    for (int i = 0; i < 8; i++) a[i * PAGE] = (char)(i + 1);
    CHECK(mremap(a, 8 * PAGE, 4 * PAGE, 0) == a);
    unsigned char v;
    CHECK(mincore(a + 4 * PAGE, PAGE, &v) == -1 && errno == ENOMEM);
    CHECK(mremap(a, 4 * PAGE, 6 * PAGE, 0) == a && a[3 * PAGE] == 4 && a[4 * PAGE] == 0);
    CHECK(mmap(a + 6 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == a + 6 * PAGE);
    CHECK(mremap(a, 6 * PAGE, 20 * PAGE, 0) == MAP_FAILED && errno == ENOMEM);
    char *b = mremap(a, 6 * PAGE, 20 * PAGE, MREMAP_MAYMOVE);
    CHECK(b != MAP_FAILED && b != a && b[2 * PAGE] == 3 && b[19 * PAGE] == 0);
    CHECK(mincore(a, PAGE, &v) == -1);
    char *spot = mmap(NULL, 20 * PAGE, PROT_NONE, ANON, -1, 0);
    CHECK(mremap(b, 20 * PAGE, 20 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, spot) == spot);
    CHECK(spot[PAGE] == 2);
#ifdef MREMAP_DONTUNMAP
    char *copy = mremap(spot, 20 * PAGE, 20 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    CHECK(copy != MAP_FAILED && copy[PAGE] == 2 && spot[PAGE] == 0);
#endif
    CHECK(mremap((void *)0x400000000, PAGE, PAGE * 2, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);

    char *start = sbrk(0);
    CHECK(sbrk(100000) == start);
    memset(start, 5, 100000);
    CHECK(sbrk(-100000) == start + 100000);
    CHECK(sbrk(100000) == start && start[99999 & ~4095] == 0);
    CHECK((char *)syscall(SYS_brk, 0) == start + 100000);
    CHECK((char *)syscall(SYS_brk, 1) == start + 100000);         /* refused: the old break */
    CHECK(sbrk(1ll << 45) == (void *)-1 && errno == ENOMEM);

    size_t size = 200000;
    unsigned char *block = malloc(size);
    for (size_t i = 0; i < size; i++) block[i] = (unsigned char)(i * 13);
    for (int round = 0; round < 8; round++) {
        block = realloc(block, size * 2);
        for (size_t i = 0; i < size; i += 997) CHECK(block[i] == (unsigned char)(i * 13));
        size *= 2;
        for (size_t i = size / 2; i < size; i++) block[i] = (unsigned char)(i * 13);
    }
    printf("%zu bytes\n", size);
    free(block);
    return ok();
}
