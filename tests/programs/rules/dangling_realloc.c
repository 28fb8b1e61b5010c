// A pointer into an array that realloc has moved.
#include <stdlib.h>

int main(void) {
    int *array = malloc(4 * sizeof *array);
    void *wall = malloc(16);
    int *first = &array[0];
    *first = 5;
    array = realloc(array, 4000 * sizeof *array);
#ifdef FIXED
    first = &array[0];
#endif
    int value = *first; // FINDS dangling-pointer
    free(array);
    free(wall);
    return value == 5 ? 0 : 0;
}
