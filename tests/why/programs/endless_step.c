/* A binary search that does not get smaller. build: gcc -g -O0; class: endless-loop; timeout: 1 */
#include <stdio.h>
static int find(const int *values, int count, int wanted)
{
    int low = 0, high = count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (values[middle] < wanted)
            low = middle; /* ROOT */
        else
            high = middle;
    }
    return low;
}
int main(void)
{
    int values[] = {1, 3, 5, 7, 9};
    printf("%d\n", find(values, 5, 8));
    return 0;
}
