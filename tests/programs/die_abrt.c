// build: -O0
// exit: SIGABRT
// A guest that dies of SIGABRT without a handler, after output that must not be lost.
#include "check.h"
#include <signal.h>
int main(void)
{
    puts("before");
    fflush(stdout);
    fputs("on stderr\n", stderr);
    abort();
    puts("not reached");
}
