// finds: data-race
// A value is written before or after an event, which the reader waits for.
#include "twin.h"
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>
static int event, value;
static void *give(void *unused)
{
    uint64_t one = 1;
    CLEAN(value = 7);
    (void)!write(event, &one, sizeof one);
    RACY(value = 7);
    return unused;
}
static void *take(void *unused)
{
    uint64_t count;
    (void)!read(event, &count, sizeof count);
    sink(value);
    return unused;
}
int main(void)
{
    event = eventfd(0, 0);
    two(take, give);
    return 0;
}
