// depth: 2, no race on the length, two variables
// Room in a log is reserved by an atomic addition and filled later; a flush in between writes what is not there.
#include "expose.h"
#include <stdatomic.h>
static _Atomic char text[64];
static _Atomic int length;
static int wrong;
static void *append(void *unused)
{
    int at = atomic_fetch_add(&length, 1);
    text[at] = 'x';
    return unused;
}
static void *flush(void *unused)
{
    work(LONG);
    int end = length;
    for (int i = 0; i < end; i++)
        wrong |= text[i] != 'x';
    return unused;
}
int main(void) { TOGETHER(append, flush); return verdict(wrong); }
