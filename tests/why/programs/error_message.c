/* The exit at the end of main tells nothing; the message was written long before. build: gcc -g -O0; class: exit-code */
#include <stdio.h>
static int status;
static int size_of(int kind)
{
    return kind == 3 ? 0 : 4; /* ROOT */
}
static void copy(int kind)
{
    if (size_of(kind) == 0) {
        fprintf(stderr, "copy: nothing to be copied\n");
        status = 2;
        return;
    }
    printf("copied %d\n", kind);
}
int main(void)
{
    for (int kind = 1; kind < 6; kind++)
        copy(kind);
    return status;
}
