// depth: 2, a race
// The flag is set before the data is there.
#include "expose.h"
static volatile int ready, data, wrong;
static void *give(void *unused)
{
    work(LONG);
    ready = 1;
    data = 7;
    return unused;
}
static void *take(void *unused)
{
    if (ready && data != 7)
        wrong = 1;
    work(4 * LONG);
    if (ready && data != 7)
        wrong = 1;
    return unused;
}
int main(void) { TOGETHER(give, take); return verdict(wrong); }
