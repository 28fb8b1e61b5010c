/* Calls: arguments, results, saved registers, recursion, pointers to functions. */
#include "slices.h"

HELPER u64 twice(u64 x) { return x + x; }
HELPER u64 second(u64 a, u64 b) { (void)a; return b; }
HELPER void put(u64 *to, u64 value) { *to = value; }
HELPER u64 deep(u64 n) { return n == 0 ? 1 : n * deep(n - 1); }
HELPER u64 odd(u64 n);
HELPER u64 even(u64 n) { return n == 0 ? 1 : odd(n - 1); }
HELPER u64 odd(u64 n) { return n == 0 ? 0 : even(n - 1); }
struct big { u64 a, b, c, d; };
HELPER struct big made(u64 x) { struct big big = {x, x + 1, x + 2, x + 3}; return big; }
HELPER u64 many(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { return a ^ g ^ (h << 3) ^ (b & c & d & e & f); }

/* What an argument is made from. */
PROGRAM argument(u64 x) { return twice(x * 3); }
/* An argument that the result does not need. */
PROGRAM unused_argument(u64 x) { return second(x * x * x, x + 1); }
/* A result through a pointer. */
PROGRAM through_pointer(u64 x) { u64 r = 5; put(&r, x + 9); return r; }
/* Recursion, one frame in another. */
PROGRAM factorial(u64 x) { return deep(x % 6 + 3); }
/* Functions that call each other; jumps instead of calls where optimised. */
PROGRAM mutual(u64 x) { return even(x + 6); }
/* A structure that comes back through memory. */
PROGRAM returned_structure(u64 x) { struct big big = made(x); return big.c; }
/* Arguments on the stack. */
PROGRAM on_the_stack(u64 x) { return many(1, 2, 3, 4, 5, 6, x * 7, x); }
/* A value that lives in a saved register across calls which use that register themselves. */
PROGRAM saved_register(u64 x) {
    u64 keep = x * 13, r = 0;
    for (int i = 0; i < 4; i++) r += twice(i);
    return keep + second(r, 2);
}
HELPER u64 uses_saved(u64 x) {
    u64 a = x + 1, b = x + 2, c = x + 3;
    u64 d = twice(a), e = twice(b), f = twice(c);
    return a * d + b * e + c * f;
}
/* A chain of saves and restores, three frames deep. */
PROGRAM save_chain(u64 x) { u64 keep = x ^ 99; u64 r = uses_saved(x) + uses_saved(x + 1); (void)r; return keep; }
/* Which function is called is a value. */
PROGRAM by_pointer(u64 x) {
    u64 (*const to[3])(u64) = {twice, deep, even};
    return to[x % 3](x % 5 + 1);
}
/* A function given to a function. */
HELPER u64 apply(u64 (*f)(u64), u64 x) { return f(x) + 1; }
PROGRAM given_function(u64 x) { return apply(twice, x); }
/* A call whose result is thrown away. */
PROGRAM thrown_away(u64 x) { twice(x * 77); return x + 4; }
/* A variable that calls change behind the scenes. */
static u64 counter;
HELPER void count(void) { counter++; }
PROGRAM global(u64 x) { counter = x; for (int i = 0; i < 5; i++) count(); return counter; }
/* Only one of two calls decides. */
PROGRAM decided_by_call(u64 x) { return twice(x) > 10 ? second(1, x) : deep(3); }
#define LIST(P) P(argument) P(unused_argument) P(through_pointer) P(factorial) P(mutual) \
    P(returned_structure) P(on_the_stack) P(saved_register) P(save_chain) P(by_pointer) \
    P(given_function) P(thrown_away) P(global) P(decided_by_call)
RUN(LIST)
