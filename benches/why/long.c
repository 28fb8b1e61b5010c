/* Works for a chosen number of rounds, then fails: near (the wrong value is made at the end) or far (it is made before
 * the work begins). A round is about 9 instructions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned table[4096];
static char *names[2] = {"ann", 0};
static unsigned work(unsigned long rounds)
{
    unsigned sum = 1;
    for (unsigned long i = 0; i < rounds; i++) {
        sum = sum * 1664525u + 1013904223u;
        table[sum >> 20] += (unsigned)i ^ sum;
    }
    return sum;
}
int main(int argc, char **argv)
{
    unsigned long rounds = strtoul(argv[1], 0, 10);
    int far = argc > 2 && strcmp(argv[2], "far") == 0;
    char *name = far ? names[argc - 2] : names[0];
    unsigned sum = work(rounds);
    if (!far)
        name = names[sum | 1 ? 1 : 0];
    return name[sum & 0];
}
