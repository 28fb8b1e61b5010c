/* An unsigned number is never below zero. build: gcc -g -O0; class: endless-loop; timeout: 1 */
#include <stdio.h>
static unsigned sum;
static void count_down(unsigned from)
{
    for (unsigned i = from; i >= 0; i--) /* ROOT */
        sum += i;
}
int main(void)
{
    count_down(10);
    printf("%u\n", sum);
    return 0;
}
