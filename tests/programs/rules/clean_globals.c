// build: -O2 -fno-pie -no-pie
// Addresses with constants folded in: the element before the first of one array is another's.
#include <stdio.h>

static int first[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static int second[8] = {1, 2, 3, 4, 5, 6, 7, 8};

__attribute__((noinline)) static int sum(int from, int to)
{
    int sum = 0;
    for (int i = from; i < to; i++)
        sum += first[i - 1] * second[8 - i];
    return sum;
}

int main(void)
{
    printf("%d\n", sum(1, 9));
    return 0;
}
