/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * Floating point with SSE: Newton's method, sums of series, comparisons with NaN, conversions
 * and rounding modes. */
#include "start.h"

__attribute__((noinline)) static double root(double of) {
    double guess = of;
    for (int i = 0; i < 20; i++) guess = (guess + of / guess) / 2;
    return guess;
}

__attribute__((noinline)) static float series(int terms) {
    float sum = 0;
    for (int i = 1; i <= terms; i++) sum += (i & 1 ? 1.0f : -1.0f) / (float)i;
    return sum;
}

int main(void) {
    volatile double zero = 0;
    double nan = zero / zero;
    int count = (nan < 1) + 2 * (nan != nan) + 4 * (1 / zero > 1e300);
    unsigned rounding;
    __asm__ volatile("stmxcsr %0" : "=m"(rounding));
    for (unsigned mode = 0; mode < 4; mode++) {
        unsigned changed = rounding | mode << 13;
        volatile double number = 2.5 - mode;
        long rounded;
        __asm__ volatile("ldmxcsr %1\n cvtsd2si %2, %0" : "=r"(rounded) : "m"(changed), "m"(number));
        count = count * 3 + (int)rounded;
    }
    __asm__ volatile("ldmxcsr %0" : : "m"(rounding));
    return (int)(root(2) * 1000 + series(200) * 1000 + count) & 127;
}
