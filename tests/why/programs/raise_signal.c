/* A watchdog of the program's own raises a signal. build: gcc -g -O0; class: raised-signal */
#include <signal.h>
#include <stdio.h>
static int budget = 3;
static void tick(void)
{
    budget = budget - 2; /* ROOT */
    if (budget < 0)
        raise(SIGUSR1);
}
int main(void)
{
    tick();
    tick();
    puts("done");
    return 0;
}
