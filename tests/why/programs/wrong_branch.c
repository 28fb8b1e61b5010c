/* A condition that is the wrong way round. build: gcc -g -O0; class: division */
#include <stdio.h>
static int step_for(int size)
{
    int step = 0;
    if (size < 10) /* ROOT */
        step = size / 2;
    return step;
}
int main(void)
{
    int size = 40;
    printf("%d\n", size / step_for(size));
    return 0;
}
