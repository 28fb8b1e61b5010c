/* The arguments of a call are in the wrong order. build: gcc -g -O0; class: assertion */
#include <assert.h>
#include <stdio.h>
static int slice(int from, int to)
{
    assert(from <= to);
    return to - from;
}
static int middle(int start, int end)
{
    return slice(end, start); /* ROOT */
}
int main(void)
{
    printf("%d\n", middle(3, 9));
    return 0;
}
