/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * Labels as values: threaded code, whose jumps have no table to see. */
#include "start.h"

int main(void) {
    static void *const labels[] = {&&add, &&twice, &&invert, &&next_round, &&done};
    static const unsigned char code[] = {0, 1, 0, 2, 1, 0, 3, 4};
    unsigned value = 1, rounds = 20;
    const unsigned char *at = code;
    goto *labels[*at++];
add:
    value += rounds;
    goto *labels[*at++];
twice:
    value <<= 1;
    goto *labels[*at++];
invert:
    value = ~value;
    goto *labels[*at++];
next_round:
    if (--rounds) at = code;
    goto *labels[*at++];
done:
    return value & 127;
}
