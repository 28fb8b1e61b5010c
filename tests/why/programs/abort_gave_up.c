/* A program's own check gives up. build: gcc -g -O0; class: abort */
#include <stdio.h>
#include <stdlib.h>
static int table[8];
static void put(int at, int value)
{
    if (at >= 8)
        abort();
    table[at] = value;
}
int main(void)
{
    for (int i = 0; i <= 8; i++) /* ROOT */
        put(i, i * i);
    printf("%d\n", table[7]);
    return 0;
}
