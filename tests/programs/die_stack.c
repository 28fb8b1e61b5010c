// build: -O0
// exit: SIGSEGV
// A guest that dies of SIGSEGV without a handler, after output that must not be lost.
#include "check.h"
#include <signal.h>
static int overflow(int depth) { volatile char page[5000]; page[0] = (char)depth; return overflow(depth + 1) + page[0]; }
int main(void)
{
    puts("before");
    fflush(stdout);
    fputs("on stderr\n", stderr);
    overflow(1);
    puts("not reached");
}
