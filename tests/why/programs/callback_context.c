/* A callback is registered with the wrong context. build: gcc -g -O0; class: null-pointer,wild-pointer */
#include <stdio.h>
struct timer { void (*call)(void *); void *context; };
static struct timer timers[2];
static void print_name(void *context)
{
    const char **name = context;
    printf("%c\n", (*name)[0]);
}
static void start(int slot, void (*call)(void *), void *context)
{
    timers[slot].call = call;
    timers[slot].context = context;
}
int main(void)
{
    static const char *name = "ann";
    static long zero;
    start(0, print_name, &name);
    start(1, print_name, &zero); /* ROOT */
    for (int i = 0; i < 2; i++)
        timers[i].call(timers[i].context);
    return 0;
}
