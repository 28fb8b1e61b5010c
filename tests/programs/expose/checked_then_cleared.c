// depth: 2, a race
// A pointer is looked at and then used; another thread clears it in between.
#include "expose.h"
static int value = 7, *volatile current = &value;
static void *use(void *unused)
{
    if (current)
        value = *current;
    return unused;
}
static void *clear(void *unused) { work(LONG); current = NULL; return unused; }
int main(void) { TOGETHER(use, clear); return verdict(value != 7); }
