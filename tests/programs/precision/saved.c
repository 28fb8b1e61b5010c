// Save and restore pairs: a function that the value does not depend on saves the register that
// carries it, and so does everything that it calls under a condition of its own.
// build: gcc -g -O1 -fno-inline
// ask: --at saved.c:33 --value result --kind full
#include <stdio.h>
#include <stdlib.h>

static volatile int noise;

static int deep(int n) {
    int a = noise + n, b = a * 3, c = b ^ n, d = c + a, e = d * b;
    if (n > 0 && noise >= 0)
        noise = deep(n - 1) + deep(n - 2) * (a + b + c + d + e);
    return a + b + c + d + e;
}

static int other(int n) {
    noise = deep(n % 7) + deep(n % 5);
    return noise;
}

static int carry(int start) {
    int value = start * 2;
    other(start);
    value += 1;
    other(start + 1);
    return value;
}

int main(int argc, char **argv) {
    int start = argc > 5 ? atoi(argv[1]) : 20;
    volatile int result = carry(start);
    printf("%d\n", result);
    return 0;
}
