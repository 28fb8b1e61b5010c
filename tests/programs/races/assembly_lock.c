// finds: data-race
// A spin lock written in assembly: an exchange, or a plain store that locks nothing.
#include "twin.h"
static int taken;
static long counter;
static void take(void)
{
    int one = 1;
    do {
        one = 1;
        TWIN(__asm__ volatile("movl %0, %1" : "+r"(one), "+m"(taken)); one = 0,
             __asm__ volatile("xchgl %0, %1" : "+r"(one), "+m"(taken)));
        if (one)
            sched_yield();
    } while (one);
}
static void give(void) { __asm__ volatile("movl $0, %0" : "=m"(taken) : : "memory"); }
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        take();
        counter++;
        give();
    }
    return unused;
}
int main(void) { two(work, work); return counter == 0; }
