// finds: data-race
// schedule: random
// A version is replaced by an atomic pointer; the old one is freed at once, or after its readers have left.
#include "twin.h"
#include <stdatomic.h>
#include <stdlib.h>
struct version { int value; };
static struct version *_Atomic current;
static _Atomic int readers;
static void *look(void *unused)
{
    for (int i = 0; i < 30; i++) {
        readers++;
        struct version *own = current;
        sched_yield();
        sink(own->value);
        readers--;
        sched_yield();
    }
    return unused;
}
static void *replace(void *unused)
{
    for (int i = 0; i < 10; i++) {
        struct version *fresh = malloc(sizeof *fresh);
        fresh->value = i;
        struct version *old = atomic_exchange(&current, fresh);
        CLEAN(while (readers) sched_yield());
        free(old);
        sched_yield();
    }
    return unused;
}
int main(void)
{
    current = calloc(1, sizeof *current);
    two(look, replace);
    free(current);
    return 0;
}
