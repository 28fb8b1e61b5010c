// The index is wrong in a callee that got the array through a global struct.
#include <stdlib.h>

static struct { int *values; int count; } table;

static int last(void) {
#ifdef FIXED
    return table.values[table.count - 1];
#else
    return table.values[table.count]; // FINDS heap-overflow
#endif
}

int main(void) {
    table.count = 7;
    table.values = calloc(table.count, sizeof(int));
    int value = last();
    free(table.values);
    return value > 1;
}
