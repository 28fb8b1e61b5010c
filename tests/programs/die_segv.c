// build: -O0
// exit: SIGSEGV
// A guest that dies of SIGSEGV without a handler, after output that must not be lost.
#include "check.h"
#include <signal.h>
int main(void)
{
    puts("before");
    fflush(stdout);
    fputs("on stderr\n", stderr);
    *(volatile int *)16 = 1;
    puts("not reached");
}
