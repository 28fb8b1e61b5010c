// build: -O1
// A fault in the middle of rep movs / rep stos / rep cmps / repne scas: registers in the frame must
// tell how far it came, and the instruction resumes where it stopped.
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
static char *area;
static long rcx, rdi, rsi;
static void *address;
static int faults;
static void handler(int s, siginfo_t *si, void *uc)
{
    (void)s;
    greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
    rcx = g[REG_RCX], rdi = g[REG_RDI], rsi = g[REG_RSI], address = si->si_addr;
    faults++;
    MUST(mprotect(area + 4096, 4096, PROT_READ | PROT_WRITE));
}
static void again(void) { faults = 0; MUST(mprotect(area + 4096, 4096, PROT_NONE)); }
int main(void)
{
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &act, NULL);
    area = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *source = malloc(8192);
    for (int i = 0; i < 8192; i++) source[i] = (char)(i * 7);
    again();
    void *di = area + 3000, *si = source;
    unsigned long n = 4000;
    __asm__ volatile("rep movsb" : "+D"(di), "+S"(si), "+c"(n)::"memory");
    CHECK(faults == 1 && address == area + 4096 && n == 0 && memcmp(area + 3000, source, 4000) == 0);
    CHECK((char *)rdi == area + 4096 && (char *)rsi == source + 1096 && rcx == 4000 - 1096);
    again();
    di = area + 4000, n = 100;
    __asm__ volatile("rep stosl" : "+D"(di), "+c"(n) : "a"(0x11223344) : "memory");
    CHECK(faults == 1 && n == 0 && rcx == 100 - 24 && (char *)rdi == area + 4096);
    again();                                           /* backwards, from the forbidden page down */
    di = area + 4296, si = source + 4296, n = 300;
    __asm__ volatile("std; rep movsb; cld" : "+D"(di), "+S"(si), "+c"(n)::"memory");
    CHECK(faults == 1 && n == 0 && rcx == 300 && memcmp(area + 4000, source + 4000, 200) == 0);
    memcpy(area, source, 8192);
    again();
    di = area, si = source, n = 8192;
    char equal;
    __asm__ volatile("repe cmpsb; sete %3" : "+D"(di), "+S"(si), "+c"(n), "=q"(equal)::"memory", "cc");
    CHECK(faults == 1 && n == 0 && equal && rcx == 4096);
    memset(area, 1, 8192);
    area[5000] = 2;
    again();
    di = area, n = 8192;
    __asm__ volatile("repne scasb" : "+D"(di), "+c"(n) : "a"(2) : "memory", "cc");
    CHECK(faults == 1 && (char *)di == area + 5001 && n == 8192 - 5001);
    return ok();
}
