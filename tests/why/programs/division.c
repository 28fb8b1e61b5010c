/* An average of nothing. build: gcc -g -O0; class: division */
#include <stdio.h>
static int count(const int *values, int limit)
{
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (values[i] > limit) /* ROOT */
            n++;
    return n;
}
static int average(const int *values, int total, int limit)
{
    return total / count(values, limit);
}
int main(void)
{
    int values[4] = {3, 4, 5, 6};
    printf("%d\n", average(values, 18, 2));
    printf("%d\n", average(values, 18, 6));
    return 0;
}
