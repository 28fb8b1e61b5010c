// Pointers into a block that moves are moved along by the distance.
#include <stdlib.h>

int main(void) {
    int *array = malloc(8 * sizeof *array);
    void *wall = malloc(64);
    int *at = array + 3;
    *at = 5;
    int *old = array;
    array = realloc(array, 8000);
    at += array - old;
    int value = *at;
    at = (int *)((char *)array + 12);
    value += *at;
    free(array);
    free(wall);
    return value - 10;
}
