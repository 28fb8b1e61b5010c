// build: -O0
// exit: SIGILL
// A guest that dies of SIGILL without a handler, after output that must not be lost.
#include "check.h"
#include <signal.h>
int main(void)
{
    puts("before");
    fflush(stdout);
    fputs("on stderr\n", stderr);
    __asm__ volatile("ud2");
    puts("not reached");
}
