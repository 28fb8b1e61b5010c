// Heap buffer overflow: the loop of line 17 counts to the size of another table, and writes over what the allocator
// keeps behind the block; it aborts at a later malloc.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int variable_count, array_count;
static void **arrays;

static void more_arrays(void) {
    void **old = arrays;
    int index;
    array_count += 32;
    arrays = malloc(array_count * sizeof *arrays);
    for (index = 0; index < array_count - 32; index++)
        arrays[index] = old[index];
    for (; index < variable_count; index++)
        arrays[index] = 0;
    free(old);
}

int main(void) {
    variable_count = 64;
    more_arrays();
    for (int name = 0; name < 8; name++) {
        char *record = malloc(5000);
        sprintf(record, "array %d", name);
    }
    printf("%d\n", array_count);
    return 0;
}
