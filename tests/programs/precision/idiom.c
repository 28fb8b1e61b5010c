// `xor r,r`: a register that is made zero depends on nothing that was in it.
// build: gcc -g -O2 -fno-inline -fno-tree-vectorize
// ask: --at idiom.c:31 --value total --kind thin
#include <stdio.h>
#include <stdlib.h>

__attribute__((noipa)) static long busy(long n) {
    long sum = 1;
    for (long i = 0; i < n; i++)
        sum = sum * 7 + i; /* thrown away */
    return sum;
}

__attribute__((noipa)) static long zero_of(long n) {
    busy(n);
    long zero;
    __asm__ volatile("xor %%eax, %%eax" : "=a"(zero) : : "cc");
    return zero;
}

__attribute__((noipa)) static long count(long n) {
    long start = zero_of(n);
    return start + 3;
}

int main(int argc, char **argv) {
    volatile long total = 0;
    (void)argv;
    total = count(50 + argc);
    long seen = total;
    printf("%ld\n", seen + total);
    return 0;
}
