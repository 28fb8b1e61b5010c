// memcpy moves the stale pointer; only its use is wrong.
#include <stdlib.h>
#include <string.h>

struct box { long a, b; int *pointer; long c; };

int main(void) {
    struct box from = { 1, 2, malloc(8), 3 }, to;
    *from.pointer = 4;
#ifndef FIXED
    free(from.pointer);
#endif
    memcpy(&to, &from, sizeof to);
    int value = *to.pointer; // FINDS dangling-pointer
#ifdef FIXED
    free(from.pointer);
#endif
    return value == 4 ? 0 : 0;
}
