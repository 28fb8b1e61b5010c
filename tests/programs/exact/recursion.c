/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * Recursion: Ackermann, Fibonacci and the towers of Hanoi; deep returns. */
#include "start.h"

__attribute__((noinline)) static int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__attribute__((noinline)) static int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__attribute__((noinline)) static int hanoi(int discs, int from, int to) {
    return discs ? hanoi(discs - 1, from, 3 - from - to) + 1 + hanoi(discs - 1, 3 - from - to, to)
                 : 0;
}

int main(void) {
    volatile int m = 2, n = 6;
    return (ackermann(m, n) + fibonacci(n + 6) + hanoi(n, 0, 2)) & 127;
}
