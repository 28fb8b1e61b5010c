// build: -O0
// exit: SIGFPE
// A guest that dies of SIGFPE without a handler, after output that must not be lost.
#include "check.h"
#include <signal.h>
int main(void)
{
    puts("before");
    fflush(stdout);
    fputs("on stderr\n", stderr);
    volatile int zero = 0; printf("%d\n", 100 / zero);
    puts("not reached");
}
