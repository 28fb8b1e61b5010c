// A pointer that another function sets to NULL meanwhile.
#include <stdlib.h>

static int cell = 4, *current = &cell;

static void reset(void) {
    current = NULL;
}

int main(void) {
#ifndef FIXED
    reset();
#endif
    int *mine = current;
    *mine = 5; // FINDS null-pointer
    return 0;
}
