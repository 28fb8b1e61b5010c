/* malloc's failure is not looked at. build: gcc -g -O0; class: null-pointer */
#include <stdio.h>
#include <stdlib.h>
static int *table(long count)
{
    return malloc((size_t)count * sizeof(int) * 1024 * 1024 * 1024); /* ROOT */
}
int main(void)
{
    int *values = table(64 * 1024L);
    values[0] = 1;
    printf("%d\n", values[0]);
    return 0;
}
