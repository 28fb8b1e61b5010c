// Row and column are exchanged.
#include <stdlib.h>

int main(void) {
    enum { ROWS = 3, COLUMNS = 8 };
    int *matrix = calloc(ROWS * COLUMNS, sizeof *matrix);
    int sum = 0;
#ifdef FIXED
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
#else
    for (int row = 0; row < COLUMNS; row++)
        for (int column = 0; column < ROWS; column++)
#endif
            sum += matrix[row * COLUMNS + column]; // FINDS heap-overflow
    free(matrix);
    return sum > 100000;
}
