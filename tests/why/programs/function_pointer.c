/* A table of functions with a hole. build: gcc -g -O0; class: wild-jump,null-pointer */
#include <stdio.h>
typedef int (*operation)(int, int);
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static operation table[4];
static void set_up(void)
{
    table[0] = add;
    table[1] = sub;
    table[3] = NULL; /* ROOT */
}
int main(void)
{
    set_up();
    printf("%d\n", table[0](1, 2));
    printf("%d\n", table[3](3, 4));
    return 0;
}
