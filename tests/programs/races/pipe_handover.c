// finds: data-race
// A value is written before or after a byte goes through a pipe, which the reader waits for.
#include "twin.h"
#include <unistd.h>
static int ends[2], value;
static void *give(void *unused)
{
    CLEAN(value = 7);
    (void)!write(ends[1], "x", 1);
    RACY(value = 7);
    return unused;
}
static void *take(void *unused)
{
    char byte;
    (void)!read(ends[0], &byte, 1);
    sink(value);
    return unused;
}
int main(void)
{
    (void)!pipe(ends);
    two(take, give);
    return 0;
}
