// build: -O2
// The same in optimised code, with the pointer in registers only.
#include <stdlib.h>

__attribute__((noinline)) static int sum(const int *numbers, int count) {
    int total = 0;
    for (int i = 0; i < count; i++)
        total += numbers[i]; // FINDS dangling-pointer
    return total;
}

__attribute__((noinline)) static void release(int *numbers) {
    free(numbers);
}

int main(void) {
    int *numbers = malloc(6 * sizeof *numbers);
    for (int i = 0; i < 6; i++)
        numbers[i] = i;
#ifdef FIXED
    int total = sum(numbers, 6);
    release(numbers);
#else
    release(numbers);
    int total = sum(numbers, 6);
#endif
    return total == 999999;
}
