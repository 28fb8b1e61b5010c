/* A name that is longer than its array. build: gcc -g -O0 -fstack-protector-all; class: out-of-bounds */
#include <stdio.h>
static void greet(const char *name)
{
    char text[8];
    int i = 0;
    for (; name[i]; i++)
        text[i] = name[i]; /* ROOT */
    text[i] = 0;
    printf("hello %s\n", text);
}
int main(void)
{
    greet("ann");
    greet("maximilian the third");
    return 0;
}
