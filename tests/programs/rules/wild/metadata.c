// Overwrites the heap's own data wholesale: the blocks, what lies between them and behind them.
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = malloc(100);
    volatile char *at = blocks[0];
    for (int i = 0; i < 2000; i++)
        at[i] = 0x5a;
    for (int i = 0; i < 8; i++)
        free(blocks[i]);
    return 0;
}
