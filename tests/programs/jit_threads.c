// build: -O1 -pthread
// One thread rewrites a function that others call, as JITs patch call sites: an aligned 4-byte
// immediate, so every call must see one of the values, and after the last write only the last.
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
static unsigned char *code;
static atomic_int stop;
typedef int (*function)(void);
static void *caller(void *arg)
{
    long calls = 0;
    while (!stop || calls < 100) {
        int got = ((function)(void *)code)();
        CHECK(got % 1001 == 0 && got >= 0 && got <= 500 * 1001);
        calls++;
    }
    return arg;
}
int main(void)
{
    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\x0f\x1f\x00\xb8\0\0\0\0\xc3", 9);          /* nop; mov eax, imm32 at +4; ret */
    pthread_t t[2];
    for (int i = 0; i < 2; i++) CHECK(!pthread_create(&t[i], NULL, caller, NULL));
    for (int i = 1; i <= 500; i++) {
        atomic_store((_Atomic int *)(void *)(code + 4), i * 1001);
        if (i % 50 == 0) usleep(200);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    CHECK(((function)(void *)code)() == 500 * 1001);
    return ok();
}
