// An allocator of the program's own and random calls of it, right and wrong, from a seed: blocks are freed
// twice, in their middle, by the wrong family, resized when they are gone; some begin at odd addresses, and
// some calls are left by a jump.
#include <setjmp.h>
#include <stdlib.h>

#define SLOTS 64
#define SLOT 96

static char memory[SLOTS * SLOT + 64];
static int used[SLOTS];
static unsigned state;
static jmp_buf out;

static unsigned next(unsigned below) {
    state = state * 1103515245u + 12345u;
    return (state >> 16) % below;
}

// Every fourth slot begins at an address that is not even a multiple of two.
static char *slot(unsigned i) { return memory + i * SLOT + (i % 4 == 3 ? 5 : 0); }

__attribute__((noinline)) char *take(unsigned long size) {
    for (unsigned tries = 0; tries < 2 * SLOTS; tries++) {
        unsigned i = next(SLOTS);
        if (!used[i] && size <= SLOT - 5) {
            used[i] = 1;
            return slot(i);
        }
    }
    return NULL;
}

__attribute__((noinline)) void give(char *p) {
    if (p < memory || p >= memory + sizeof memory)
        return;
    if (next(16) == 0)
        longjmp(out, 1);
    used[(p - memory) / SLOT] = 0;
}

// Another family, that works with the first.
__attribute__((noinline)) char *node_take(unsigned long size) { return take(size); }
__attribute__((noinline)) void node_give(char *p) { give(p); }

static void step(char **known) {
    char **p = &known[next(16)];
    switch (next(9)) {
    case 0: *p = take(next(90)); break;
    case 1: *p = take(16); break;
    case 2: *p = node_take(next(90)); break;
    case 3: give(*p); break;
    case 4: give(*p); *p = NULL; break;
    case 5: node_give(*p); break;
    case 6: if (*p) give(*p + next(40)); break;
    case 7: *p = take(1ul << 50); break;
    case 8: give(slot(next(SLOTS))); break;
    }
}

int main(int argc, char **argv) {
    char *known[16] = {0};
    state = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    for (volatile int i = 0; i < 400; i++)
        if (!setjmp(out))
            step(known);
    return 0;
}
