// build: -O1 -fno-optimize-sibling-calls
// build: -O2
// Deep recursion, mutual tail calls, function pointers through large tables, qsort callbacks, varargs,
// switch jump tables with all cases.
#include "check.h"
#include <stdarg.h>
static unsigned long ackermann(unsigned long m, unsigned long n)
{
    if (!m) return n + 1;
    return n ? ackermann(m - 1, ackermann(m, n - 1)) : ackermann(m - 1, 1);
}
static int deep(int n) { volatile int keep = n; return n ? deep(n - 1) + (keep & 1) : 0; }
static int is_odd(unsigned n);
static int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
static int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }
#define F(n) static unsigned f##n(unsigned x) { return x * (2 * n + 3) + n; }
#define F10(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define F100(n) F10(n##0) F10(n##1) F10(n##2) F10(n##3) F10(n##4) F10(n##5) F10(n##6) F10(n##7) F10(n##8) F10(n##9)
F100(1) F100(2) F100(3)
#define N(n) f##n,
#define N10(n) N(n##0) N(n##1) N(n##2) N(n##3) N(n##4) N(n##5) N(n##6) N(n##7) N(n##8) N(n##9)
#define N100(n) N10(n##0) N10(n##1) N10(n##2) N10(n##3) N10(n##4) N10(n##5) N10(n##6) N10(n##7) N10(n##8) N10(n##9)
static unsigned (*const table[])(unsigned) = {N100(1) N100(2) N100(3)};
static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static double mixed(int n, ...)
{
    va_list list;
    va_start(list, n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += i % 2 ? va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return sum;
}
int main(void)
{
    printf("ackermann %lu\n", ackermann(2, 300));
    printf("deep %d\n", deep(20000));
    printf("even %d\n", is_even(50000));
    unsigned x = 1;
    for (int i = 0; i < 200000; i++) x = table[(x >> 7) % (sizeof table / sizeof *table)](x);
    printf("table %u\n", x);
    int data[2000];
    for (int i = 0; i < 2000; i++) data[i] = (i * 7919) % 2003;
    qsort(data, 2000, sizeof *data, ascending);
    for (int i = 1; i < 2000; i++) CHECK(data[i - 1] <= data[i]);
    printf("mixed %.2f\n", mixed(8, 1, 2.5, 3, 4.5, 5, 6.5, 7, 8.5));
    return ok();
}
