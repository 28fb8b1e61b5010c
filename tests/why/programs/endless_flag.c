/* A flag that nobody sets any more. build: gcc -g -O0; class: endless-loop; timeout: 1 */
#include <stdio.h>
static int finished;
static int work(int n)
{
    if (n > 5)
        finished = 0; /* ROOT */
    return n + 1;
}
int main(void)
{
    int n = 0;
    finished = 1;
    while (n < 10)
        n = work(n);
    while (!finished)
        ;
    puts("done");
    return 0;
}
