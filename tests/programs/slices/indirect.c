/* Indirect jumps and calls that go to one target only: they are decisions all the same. `chosen` makes
 * what they look at, so it is in the slice of every program here but those named `_not`. */
#include "slices.h"
HELPER u64 chosen(u64 x) { u64 r = x * 5 + 3; UNKNOWN(r); return r; }
HELPER u64 plus(u64 x) { return x + 11; }
HELPER u64 minus(u64 x) { return x - 12; }
HELPER u64 times(u64 x) { return x * 13; }

/* A switch, executed once; its index is masked. */
PROGRAM masked_switch(u64 x) {
    u64 r = 1;
    switch (chosen(x) & 7) {
    case 0: r = 30; break; case 1: r = 41; break; case 2: r = 52; break; case 3: r = 67; break;
    case 4: r = 74; break; case 5: r = 81; break; case 6: r = 99; break; case 7: r = 12; break;
    }
    UNKNOWN(r);
    return r;
}
/* A switch, executed once; its index is compared. */
PROGRAM compared_switch(u64 x) {
    volatile u64 r = 1;
    switch (chosen(x) % 11) {
    case 0: r = 3; break; case 1: r ^= x; break; case 2: r = 52; break; case 3: r += x; break;
    case 4: r = 7; break; case 5: r -= x; break; case 6: r = 99; break; case 7: r *= x; break;
    default: r = 5;
    }
    return r;
}
/* What comes after the switch does not hang on it. */
PROGRAM after_switch_not(u64 x) {
    static volatile u64 other;
    switch (chosen(x) & 7) {
    case 0: other = 30; break; case 1: other ^= 41; break; case 2: other += 52; break; case 3: other *= 67; break;
    case 4: other = 74; break; case 5: other ^= 81; break; case 6: other += 99; break; case 7: other *= 12; break;
    }
    volatile u64 r = x * 77;
    return r;
}
/* A computed goto. */
PROGRAM computed(u64 x) {
    static void *const to[] = {&&one, &&two, &&three, &&four};
    volatile u64 r = 0;
    goto *to[chosen(x) & 3];
one: r = 21; return r;
two: r = 22; return r;
three: r = 23; return r;
four: r = 24; return r;
}
/* A call through a table. */
PROGRAM called(u64 x) {
    static u64 (*const to[])(u64) = {plus, minus, times, plus};
    return to[chosen(x) & 3](x) ^ 1;
}
static u64 (*const functions[])(u64) = {times, plus, minus, times};
/* A tail call through a table, where optimised. */
HELPER u64 tail(u64 index, u64 x) { return functions[index & 3](x); }
PROGRAM tail_called(u64 x) { return tail(chosen(x), x); }
#define LIST(P) P(masked_switch) P(compared_switch) P(after_switch_not) P(computed) P(called) P(tail_called)
RUN(LIST)
