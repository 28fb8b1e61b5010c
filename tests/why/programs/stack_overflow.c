/* A recursion that does not step on. build: gcc -g -O0; class: stack-overflow */
#include <stdio.h>
static int depth(int n)
{
    char room[64] = {0};
    if (n == 0)
        return room[0];
    return 1 + depth(n); /* ROOT */
}
int main(void)
{
    printf("%d\n", depth(3));
    return 0;
}
