/* build: -O1 -static
 * Callbacks from a library: qsort and bsearch with comparison functions of ours. */
#include <stdlib.h>
#include <string.h>

static int by_value(const void *one, const void *other) {
    return *(const int *)one - *(const int *)other;
}

static int by_name(const void *one, const void *other) {
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

int main(void) {
    int numbers[100], wanted = 57 * 57 % 101;
    for (int i = 0; i < 100; i++) numbers[i] = i * i * 31 % 1009;
    numbers[50] = wanted;
    qsort(numbers, 100, sizeof numbers[0], by_value);
    const char *names[] = {"pear", "apple", "fig", "quince", "medlar", "plum", "sloe"};
    qsort(names, 7, sizeof names[0], by_name);
    int *found = bsearch(&wanted, numbers, 100, sizeof numbers[0], by_value);
    return (int)(found - numbers + names[3][0]) & 127;
}
