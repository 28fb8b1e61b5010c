/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * 128-bit arithmetic: carries, multiplication, shifts, division by hand. */
#include "start.h"

typedef unsigned __int128 wide;

__attribute__((noinline)) static wide power(wide base, unsigned exponent) {
    wide result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

__attribute__((noinline)) static wide divide(wide number, unsigned long by, wide *rest) {
    wide quotient = 0;
    *rest = 0;
    for (int bit = 127; bit >= 0; bit--) {
        *rest = *rest << 1 | (number >> bit & 1);
        if (*rest >= by) *rest -= by, quotient |= (wide)1 << bit;
    }
    return quotient;
}

int main(void) {
    volatile unsigned exponent = 29;
    wide number = power(17, exponent), rest, sum = 0;
    while (number) number = divide(number, 1000000007, &rest), sum += rest;
    return (int)(sum ^ sum >> 64) & 127;
}
