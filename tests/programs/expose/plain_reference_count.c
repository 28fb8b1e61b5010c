// depth: 2, a race
// References are counted without a lock: nobody frees, or both do.
#include "expose.h"
static volatile int count = 2;
static volatile int freed;
static void drop(void)
{
    int left = count - 1;
    count = left;
    if (left == 0)
        freed++;
}
static void *soon(void *unused) { drop(); return unused; }
static void *late(void *unused) { work(LONG); drop(); return unused; }
int main(void) { TOGETHER(soon, late); return verdict(freed != 1); }
