// build: -O1
// build: -O1 -static
// Generated code: in a writable+executable page, written again and again at the same place; in a page
// toggled by mprotect; through two mappings of one memfd (one writable, one executable); copied away.
#include "check.h"
#include <sys/mman.h>
enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE, RX = PROT_READ | PROT_EXEC };
typedef int (*function)(int);
/* mov eax, imm32; add eax, edi; ret */
static void emit(unsigned char *at, int32_t value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0x01, at[6] = 0xf8, at[7] = 0xc3;
}
int main(void)
{
    long sum = 0;
    unsigned char *rwx = mmap(NULL, PAGE, RW | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(rwx != MAP_FAILED);
    for (int i = 0; i < 2000; i++) {
        emit(rwx, i);
        int got = ((function)(void *)rwx)(1000);
        CHECK(got == 1000 + i);
        sum += got;
    }
    for (int i = 0; i < 2000; i++) {                 /* side by side on one page */
        unsigned char *at = rwx + 16 * (i % 200);
        emit(at, i * 3);
        CHECK(((function)(void *)at)(1) == 1 + i * 3);
    }
    unsigned char *toggled = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 300; i++) {
        MUST(mprotect(toggled, PAGE, RW));
        emit(toggled, -i);
        MUST(mprotect(toggled, PAGE, RX));
        CHECK(((function)(void *)toggled)(5) == 5 - i);
    }
    int fd = memfd_create("code", 0);
    MUST(ftruncate(fd, PAGE));
    unsigned char *write_view = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    unsigned char *run_view = mmap(NULL, PAGE, RX, MAP_SHARED, fd, 0);
    for (int i = 0; i < 300; i++) {
        emit(write_view, i * 7);
        CHECK(((function)(void *)run_view)(2) == 2 + i * 7);
    }
    for (int i = 0; i < 200; i++) {                  /* map, run, unmap: often the same address */
        unsigned char *fresh = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        emit(fresh, i);
        MUST(mprotect(fresh, PAGE, RX));
        CHECK(((function)(void *)fresh)(0) == i);
        MUST(munmap(fresh, PAGE));
    }
    unsigned char *moved = mmap(NULL, PAGE, RW | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    emit(moved, 1);
    CHECK(((function)(void *)moved)(1) == 2);
    unsigned char *there = mremap(moved, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)toggled);
    CHECK(((function)(void *)there)(9) == 10);
    for (int i = 0; i < 100; i++) {                  /* replaced under the code by MAP_FIXED */
        CHECK(mmap(there, PAGE, RW | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == there);
        emit(there, i + 50);
        CHECK(((function)(void *)there)(0) == i + 50);
    }
    printf("sum %ld\n", sum);
    return ok();
}
