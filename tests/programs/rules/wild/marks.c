// A collector that forgets to mark a live block (Figure 3.6 of the reference): its first word's
// lowest bit is the mark.
#include <stdlib.h>

static long *kept[3];

__attribute__((noinline)) int gc(int all)
{
    for (int i = 0; i < 3; i++)
        if (all || i != 1)
            *kept[i] |= 1;
    return all;
}

int main(int count, char **words)
{
    for (int i = 0; i < 3; i++) {
        kept[i] = malloc(sizeof(long));
        *kept[i] = 0;
    }
    return gc(count > 1) > 1;
}
