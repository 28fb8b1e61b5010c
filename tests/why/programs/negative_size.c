/* A length that is below zero. build: gcc -g -O0; class: wild-pointer,out-of-bounds,null-pointer */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int body_length(int total, int head)
{
    return total - head; /* ROOT */
}
int main(void)
{
    char message[32] = "abc", copy[32];
    int length = body_length(3, 8);
    memcpy(copy, message, (size_t)length);
    puts(copy);
    return 0;
}
