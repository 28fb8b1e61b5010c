/* The heap is damaged by a loop that goes too far; free notices. build: gcc -g -O0; class: out-of-bounds */
#include <stdio.h>
#include <stdlib.h>
static void fill(long *values, int count)
{
    for (int i = 0; i <= count; i++)
        values[i] = -1; /* ROOT */
}
int main(void)
{
    long *first = malloc(3 * sizeof *first);
    long *second = malloc(3 * sizeof *second);
    fill(first, 3);
    free(second);
    free(first);
    puts("done");
    return 0;
}
