// finds: data-race
// A sequence lock whose data is atomic, or not and without the sequence.
#include "twin.h"
#include <stdatomic.h>
static _Atomic unsigned sequence;
static TWIN(long, _Atomic long) one, other;
static void *write_it(void *unused)
{
    for (int i = 0; i < 30; i++) {
        CLEAN(sequence++);
        one = i;
        other = i;
        CLEAN(sequence++);
    }
    return unused;
}
static void *read_it(void *unused)
{
    for (int i = 0; i < 30; i++)
        sink((int)(one + other));
    return unused;
}
int main(void) { two(write_it, read_it); return 0; }
