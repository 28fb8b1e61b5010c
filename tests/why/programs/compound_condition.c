/* The wrong half of a condition is not the one that decided last. build: gcc -g -O0; class: exit-code */
#include <stdio.h>
#include <stdlib.h>
static int test, to_output;
static void options(int quiet, int count)
{
    if (!quiet)
        test = 1; /* ROOT */
    if (count > 1)
        to_output = 1;
}
int main(int argc, char **argv)
{
    (void)argv;
    options(0, argc + 1);
    if (test && to_output) {
        fprintf(stderr, "these cannot be used together\n");
        exit(1);
    }
    return 0;
}
