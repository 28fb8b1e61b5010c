// build: -O1
// Code made of random numbers: written, made executable by mprotect, called, written again; one page
// is writable and executable all the time.
#include "check.h"
#include <sys/mman.h>
#include <sys/random.h>

static void emit(unsigned char *code, unsigned value)
{
    unsigned char bytes[] = {0xb8, 0, 0, 0, 0, 0x01, 0xf8, 0xc3}; /* mov eax, value; add eax, edi; ret */
    memcpy(bytes + 1, &value, 4);
    memcpy(code, bytes, sizeof bytes);
}

int main(void)
{
    unsigned char *strict = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *loose =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(strict != MAP_FAILED && loose != MAP_FAILED);
    unsigned sum = 0;
    for (int i = 0; i < 40; i++) {
        unsigned values[2];
        CHECK(getrandom(values, sizeof values, 0) == sizeof values);
        MUST(mprotect(strict, 4096, PROT_READ | PROT_WRITE));
        emit(strict, values[0]);
        MUST(mprotect(strict, 4096, PROT_READ | PROT_EXEC));
        emit(loose + i * 16, values[1]);
        unsigned one = ((unsigned (*)(unsigned))(void *)strict)(sum);
        CHECK(one == values[0] + sum);
        sum = ((unsigned (*)(unsigned))(void *)(loose + (unsigned)(i / 2) * 16))(one);
    }
    printf("sum %08x\n", sum);
    return ok();
}
