// build: -O0
// exit: SIGBUS
// A guest that dies of SIGBUS without a handler, after output that must not be lost.
#include "check.h"
#include <signal.h>
int main(void)
{
    puts("before");
    fflush(stdout);
    fputs("on stderr\n", stderr);
    __asm__ volatile("pushf; orl $0x40000, (%%rsp); popf; movl 1(%0), %%eax" :: "r"(&main) : "rax", "memory");
    puts("not reached");
}
