// depth: 2, no race
// Numbers are given out by an atomic load and an atomic store.
#include "expose.h"
#include <stdatomic.h>
static _Atomic int next_number;
static int numbers[2];
static int number(void)
{
    int own = next_number;
    next_number = own + 1;
    return own;
}
static void *soon(void *unused) { numbers[0] = number(); return unused; }
static void *late(void *unused) { work(LONG); numbers[1] = number(); return unused; }
int main(void) { TOGETHER(soon, late); return verdict(numbers[0] == numbers[1]); }
