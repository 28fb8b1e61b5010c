// build: -O1 -z execstack -Wno-trampolines
// Code on the stack: GNU C nested functions make trampolines there.
#include "check.h"
static int apply(int (*f)(int), int n) { int sum = 0; for (int i = 0; i < n; i++) sum += f(i); return sum; }
static int level(int depth)
{
    int hits = 0;
    int inner(int x) { hits++; return x * depth; }
    int sum = apply(inner, 10);
    return depth ? sum + level(depth - 1) + hits : sum;
}
static int compare_with(int *data, int n, int pivot)
{
    int below = 0;
    int by(const void *a, const void *b)
    {
        below += *(int *)a < pivot;
        return *(int *)a - *(int *)b;
    }
    qsort(data, (size_t)n, sizeof *data, by);
    return below > 0;
}
int main(void)
{
    printf("%d\n", level(100));
    int data[100];
    for (int i = 0; i < 100; i++) data[i] = i * 7919 % 101;
    CHECK(compare_with(data, 100, 50));
    for (int i = 1; i < 100; i++) CHECK(data[i - 1] <= data[i]);
    return ok();
}
