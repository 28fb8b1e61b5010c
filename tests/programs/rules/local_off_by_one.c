// The element behind a local array is a neighbour in the same frame.
#include <stdio.h>

static int sum(int count) {
    int before[4] = {0}, values[8], after[4] = {0};
    for (int i = 0; i < count; i++)
        values[i] = i; // FINDS stack-overflow
    return values[0] + before[1] + after[1];
}

int main(void) {
#ifdef FIXED
    int count = 8;
#else
    int count = 9;
#endif
    return sum(count) == 1000;
}
