/* build: -O1 -static
 * Stacks switched by the program: makecontext and swapcontext, two coroutines taking turns. */
#include <ucontext.h>

static ucontext_t home, contexts[2];
static char stacks[2][16384];
static volatile int sum;

static void take_turns(int which) {
    for (int i = 0; i < 5; i++) {
        sum = sum * 2 + which + i;
        swapcontext(&contexts[which], &contexts[1 - which]);
    }
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        contexts[i].uc_link = &home;
        makecontext(&contexts[i], (void (*)(void))take_turns, 1, i);
    }
    swapcontext(&home, &contexts[0]);
    return sum & 127;
}
