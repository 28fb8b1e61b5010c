/* build: -O1 -static
 * setjmp and longjmp: out of deep calls, and back and forth. */
#include <setjmp.h>

static jmp_buf place;

__attribute__((noinline)) static int descend(int depth) {
    if (depth == 0) longjmp(place, 7);
    return descend(depth - 1) + 1;
}

int main(void) {
    volatile int rounds = 0;
    int value = setjmp(place);
    if (value == 0 || rounds < 5) {
        rounds++;
        descend(10 * rounds);
    }
    return rounds * value & 127;
}
