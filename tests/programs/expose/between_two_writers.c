// depth: 3, a race, two variables
// A position of two numbers; the reader meets the first writer between the two and the second behind both.
#include "expose.h"
static volatile int x, y, wrong;
static void *first(void *unused) { x = 1; y = 1; return unused; }
static void *second(void *unused) { work(LONG); x = 2; y = 2; return unused; }
static void *look(void *unused)
{
    work(3 * LONG);
    int one = x;
    int other = y;
    wrong = one == 1 && other == 2;
    return unused;
}
int main(void) { TOGETHER(first, second, look); return verdict(wrong); }
