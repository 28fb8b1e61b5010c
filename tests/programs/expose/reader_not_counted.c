// depth: 2, no race on the count
// A reader is counted after it has taken the pointer; the writer does not wait for it.
#include "expose.h"
#include <stdatomic.h>
struct version { int value; };
static struct version *_Atomic current;
static _Atomic int readers;
static int seen = 1;
static void *look(void *unused)
{
    struct version *own = current;
    readers++;
    seen = own->value;
    readers--;
    return unused;
}
static void *replace(void *unused)
{
    work(LONG);
    struct version *fresh = malloc(sizeof *fresh);
    fresh->value = 2;
    struct version *old = atomic_exchange(&current, fresh);
    while (readers)
        sched_yield();
    old->value = -1;
    free(old);
    return unused;
}
int main(void)
{
    current = malloc(sizeof *current);
    current->value = 1;
    TOGETHER(look, replace);
    return verdict(seen != 1 && seen != 2);
}
