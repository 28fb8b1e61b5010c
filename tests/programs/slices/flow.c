/* Branches, loops and jumps: what decided that a value was made. */
#include "slices.h"
static u64 table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

/* The side that was not taken is not in the slice. */
PROGRAM one_side(u64 x) { u64 a = x * 3, b = x * 5; return x & 1 ? a : b; }
/* A decision about a decision. */
PROGRAM nested(u64 x) {
    u64 r = 1;
    if (table[x & 15] > 2) { if (table[(x + 1) & 15] > 4) r = x + 7; else r = x + 8; }
    return r;
}
/* Each round depends on the one before. */
PROGRAM carried(u64 x) { u64 r = x; for (int i = 0; i < 9; i++) r = r * 31 + table[i]; return r; }
/* Only the last round counts. */
PROGRAM last_round(u64 x) { volatile u64 r = 0; for (u64 i = 0; i < x + 5; i++) r = table[i & 15]; return r; }
/* A loop that nothing in the result needs. */
PROGRAM idle_loop(u64 x) { volatile u64 idle = 0; for (int i = 0; i < 12; i++) idle += i; return x ^ 5; }
/* Left in the middle. */
PROGRAM leaves_early(u64 x) {
    u64 r = 0;
    for (u64 i = 0; i < 16; i++) { if (table[i] == 9) break; r += table[i] * x; }
    return r;
}
/* Rounds that are skipped. */
PROGRAM skips(u64 x) { u64 r = 0; for (int i = 0; i < 16; i++) { if (table[i] & 1) continue; r += i ^ x; } return r; }
/* A switch by a table of jumps. */
PROGRAM jump_table(u64 x) {
    u64 r = 0;
    for (u64 i = 0; i < 9; i++)
        switch ((x + i) % 9) {
        case 0: r += 3; break;
        case 1: r ^= 77; break;
        case 2: r *= 3; break;
        case 3: r -= i; break;
        case 4: r += table[i]; break;
        case 5: r ^= x; break;
        case 6: r = r << 1; break;
        case 7: r |= 1; break;
        default: r += 100;
        }
    return r;
}
/* One case runs into the next. */
PROGRAM falls_through(u64 x) {
    u64 r = 0;
    switch (x % 5) { case 0: r += 1; case 1: r += 10; case 2: r += 100; case 3: r += 1000; default: r += x; }
    return r;
}
/* A condition of two conditions. */
PROGRAM short_circuit(u64 x) { return (table[x & 15] > 1 && table[(x >> 1) & 15] > 1) || x == 3 ? x + 1 : x + 2; }
/* The condition comes last. */
PROGRAM bottom_test(u64 x) { u64 r = x; do { r = r / 2 + 1; } while (r > 3); return r; }
/* Two ways into a loop. */
PROGRAM two_entries(u64 x) {
    u64 r = x, i = 0;
    if (x & 1) goto middle;
    for (; i < 6; i++) { r += table[i]; middle: r ^= i; }
    return r;
}
/* Jumps to computed places. */
PROGRAM computed_goto(u64 x) {
    static void *const to[] = {&&add, &&mix, &&end};
    u64 r = x, i = 0;
    goto *to[i];
add: r += 11; i = 1; goto *to[r & 1 ? 1 : 2];
mix: r *= 7; goto *to[2];
end: return r;
}
/* A state machine. */
PROGRAM states(u64 x) {
    u64 state = 0, r = 0;
    for (int i = 0; i < 12; i++) {
        if (state == 0) state = table[i] > 4;
        else if (state == 1) { r += i; state = 2; }
        else { r ^= x; state = 0; }
    }
    return r;
}
/* A loop in a loop, with a result of each. */
PROGRAM matrix(u64 x) {
    u64 m[3][3], r = 0;
    for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) m[i][j] = i * j + x;
    for (int i = 0; i < 3; i++) r += m[i][(x + i) % 3];
    return r;
}
#define LIST(P) P(one_side) P(nested) P(carried) P(last_round) P(idle_loop) P(leaves_early) P(skips) \
    P(jump_table) P(falls_through) P(short_circuit) P(bottom_test) P(two_entries) P(computed_goto) \
    P(states) P(matrix)
RUN(LIST)
