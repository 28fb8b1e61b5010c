// Library folding: what happens inside qsort and snprintf is told as the calls of them.
// build: gcc -g -O0
// ask: --at library.c:25 --value line --kind full
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int order(const void *left, const void *right) {
    return *(const int *)left - *(const int *)right;
}

static int middle(int *numbers, int count) {
    qsort(numbers, count, sizeof *numbers, order);
    return numbers[count / 2];
}

int main(int argc, char **argv) {
    (void)argv;
    int numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = (i * 37 + argc) % 64;
    int found = middle(numbers, 64);
    char line[64];
    snprintf(line, sizeof line, "the middle is %d of %s", found, "64");
    puts(line);
    return 0;
}
