// build: -O1
// Faults of the fetch itself: a jump to unmapped memory, to a page without execute permission, an
// instruction that runs into the next, unmapped page, and one that is completed there after a retry.
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
static sigjmp_buf back;
static void *address, *pc;
static int code;
static char *page;
static int repair;
static void handler(int s, siginfo_t *si, void *uc)
{
    (void)s;
    address = si->si_addr, code = si->si_code;
    pc = (void *)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
    if (repair) {
        MUST(mprotect(page + 4096, 4096, PROT_READ | PROT_EXEC));
        return;
    }
    siglongjmp(back, 1);
}
static void call(void *at) { if (!sigsetjmp(back, 1)) ((void (*)(void))at)(); }
int main(void)
{
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &act, NULL);
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    call((void *)0x7000);
    CHECK(address == (void *)0x7000 && pc == address && code == SEGV_MAPERR);
    call(page);
    CHECK(address == page && pc == page && code == SEGV_ACCERR);
    memset(page, 0x90, 8192);
    page[4094] = (char)0xb8;                          /* mov eax, imm32: three bytes on the next page */
    page[4095] = 7, page[4096] = 0, page[4097] = 0, page[4098] = 0, page[4099] = (char)0xc3;
    MUST(mprotect(page, 4096, PROT_READ | PROT_EXEC));
    call(page + 4000);
    CHECK(address == page + 4096 && pc == page + 4094);
    repair = 1;
    CHECK(((int (*)(void))(void *)(page + 4000))() == 7);
    repair = 0;
    MUST(munmap(page + 4096, 4096));
    call(page + 4094);
    CHECK(address == page + 4096 && pc == page + 4094 && code == SEGV_MAPERR);
    return ok();
}
