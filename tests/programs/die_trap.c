// build: -O0
// exit: SIGTRAP
// A guest that dies of SIGTRAP without a handler, after output that must not be lost.
#include "check.h"
#include <signal.h>
int main(void)
{
    puts("before");
    fflush(stdout);
    fputs("on stderr\n", stderr);
    __asm__ volatile("int3");
    puts("not reached");
}
