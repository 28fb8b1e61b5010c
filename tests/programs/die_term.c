// build: -O0
// exit: SIGTERM
// A guest that dies of SIGTERM without a handler, after output that must not be lost.
#include "check.h"
#include <signal.h>
int main(void)
{
    puts("before");
    fflush(stdout);
    fputs("on stderr\n", stderr);
    kill(getpid(), SIGTERM);
    puts("not reached");
}
