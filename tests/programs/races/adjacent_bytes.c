// finds: data-race
// Two threads write bytes of one word: each its own, or both the same.
#include "twin.h"
static volatile char bytes[8];
static void *first(void *unused)
{
    for (int i = 0; i < 20; i++)
        bytes[3] = (char)i;
    return unused;
}
static void *second(void *unused)
{
    for (int i = 0; i < 20; i++)
        bytes[TWIN(3, 4)] = (char)i;
    return unused;
}
int main(void) { two(first, second); return 0; }
