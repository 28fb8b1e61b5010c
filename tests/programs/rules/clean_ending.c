// Ends with a number that does not fit into an exit code.
#include <stdlib.h>

int main(void) {
    int *numbers = malloc(4 * sizeof *numbers);
    numbers[0] = 1;
    int code = -numbers[0];
    free(numbers);
    exit(code);
}
