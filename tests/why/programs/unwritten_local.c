/* A variable is written on one way only; what earlier calls left there is used. build: gcc -g -O0 -fno-stack-protector; class: null-pointer,wild-pointer,uninitialised */
#include <stdio.h>
static void earlier(void)
{
    volatile char room[256];
    for (int i = 0; i < 256; i++)
        room[i] = 0;
}
static int length(int kind)
{
    const char *name;
    if (kind == 1) /* ROOT */
        name = "one";
    int count = 0;
    while (name[count])
        count++;
    return count;
}
int main(void)
{
    printf("%d\n", length(1));
    earlier();
    printf("%d\n", length(2));
    return 0;
}
