// Calls that are easily confused: recursion, a function left by longjmp, a tail call, and
// allocation functions of the C library.
#include <setjmp.h>
#include <stdlib.h>

static jmp_buf outside;

__attribute__((noinline)) int factorial(int n)
{
    volatile int product = n < 2 ? 1 : n * factorial(n - 1); // no loop in disguise
    return product;
}

__attribute__((noinline)) int leaves(int n)
{
    if (n == 1)
        longjmp(outside, n);
    return n + 5;
}

__attribute__((noinline)) int jumps_to(int n)
{
    return factorial(n + 1); // becomes a jump
}

int main(void)
{
    for (volatile int i = 0; i < 3; i++)
        if (setjmp(outside) == 0)
            leaves(i);
    int sum = factorial(3) + jumps_to(1);
    char *block = malloc(100);
    block = realloc(block, 5000);
    free(block);
    return sum; // 6 + 2
}
