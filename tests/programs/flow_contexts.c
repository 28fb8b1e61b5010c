// build: -O1
// build: -O2 -static
// makecontext/swapcontext generators that run in turns, a context that ends into uc_link, deep
// switching, and setjmp/longjmp between frames.
#include "check.h"
#include <setjmp.h>
#include <ucontext.h>
enum { GENERATORS = 8, STEPS = 500 };
static ucontext_t main_context, generator[GENERATORS];
static long produced;
static int finished;
static void body(int which)
{
    double own = which;
    for (int i = 0; i < STEPS; i++) {
        own = own * 1.5 - (int)own / 2;
        produced = produced * 33 + which + i;
        CHECK(!swapcontext(&generator[which], &main_context));
    }
    finished += own != 0 || which == 0;
}
static jmp_buf jump;
static void thrower(int depth) { if (!depth) longjmp(jump, 42); thrower(depth - 1); }
int main(void)
{
    for (int i = 0; i < GENERATORS; i++) {
        CHECK(!getcontext(&generator[i]));
        generator[i].uc_stack.ss_sp = malloc(32768);
        generator[i].uc_stack.ss_size = 32768;
        generator[i].uc_link = &main_context;
        makecontext(&generator[i], (void (*)(void))body, 1, i);
    }
    for (int step = 0; step <= STEPS; step++)
        for (int i = 0; i < GENERATORS; i++) CHECK(!swapcontext(&main_context, &generator[i]));
    printf("produced %lx finished %d\n", produced, finished);
    volatile int rounds = 0;
    for (; rounds < 1000; rounds++) {
        int got = setjmp(jump);
        if (!got) thrower(rounds % 50);
        CHECK(got == 42);
    }
    return ok();
}
