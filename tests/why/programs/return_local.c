/* The address of a local variable is returned. build: gcc -g -O0 -w; class: use-after-free,null-pointer,wild-pointer */
#include <stdio.h>
struct point { int x, y; };
static struct point *middle(void)
{
    struct point made = {3, 4};
    struct point *result = &made;
    return result; /* ROOT */
}
static int noise(int n)
{
    volatile long room[16];
    for (int i = 0; i < 16; i++)
        room[i] = -1 - n;
    return (int)room[3];
}
int main(void)
{
    struct point *point = middle();
    noise(3);
    static int table[8];
    printf("%d\n", table[point->x * 4096]);
    return 0;
}
