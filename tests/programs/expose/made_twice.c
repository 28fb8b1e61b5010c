// depth: 2, no race
// Whoever finds nothing makes it; both threads may find nothing.
#include "expose.h"
#include <stdatomic.h>
static _Atomic(int *) made;
static _Atomic int count;
static void make(void)
{
    if (!made) {
        int *fresh = malloc(sizeof *fresh);
        count++;
        made = fresh;
    }
}
static void *soon(void *unused) { make(); return unused; }
static void *late(void *unused) { work(LONG); make(); return unused; }
int main(void) { TOGETHER(soon, late); return verdict(count != 1); }
