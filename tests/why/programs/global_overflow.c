/* A loop over an array goes one too far and overwrites the pointer behind it. build: gcc -g -O0 -fno-toplevel-reorder; class: out-of-bounds */
#include <stdio.h>
static long counts[4] = {1};
static const char *title = "counts";
static void clear(int n)
{
    for (int i = 0; i <= n; i++)
        counts[i] = 0; /* ROOT */
}
int main(void)
{
    clear(4);
    printf("%c\n", title[0]);
    return 0;
}
