/* An index that was read from text. build: gcc -g -O0; class: wild-pointer,out-of-bounds */
#include <stdio.h>
#include <stdlib.h>
static int prices[16];
static int parse(const char *text)
{
    return atoi(text) * 4096 * 1024; /* ROOT */
}
int main(void)
{
    int at = parse("99");
    prices[0] = 1;
    printf("%d\n", prices[at]);
    return 0;
}
