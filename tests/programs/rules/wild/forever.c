// Has a bug, says so, and never ends by itself.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    volatile char *block = malloc(10);
    free((void *)block);
    block[3] = 1;
    for (volatile long i = 0; i < 3000000; i++)
        ;
    for (;;)
        for (volatile long i = 0; i < 100000; i++)
            ;
}
