/* An error is tried again for ever. build: gcc -g -O0; class: endless-loop; timeout: 1 */
#include <errno.h>
#include <stdio.h>
static int attempts;
static int connect_to(int port)
{
    attempts++;
    if (port > 1000)
        return -1; /* ROOT */
    return 0;
}
int main(void)
{
    while (connect_to(8080) < 0)
        ;
    printf("%d\n", attempts);
    return 0;
}
