// build: -O1 -fno-stack-protector
// A loop runs over an array, the frame and the return address.
#include <stdlib.h>

__attribute__((noinline)) static void fill(int end) {
    volatile char local[16];
    for (int i = 0; i < end; i++)
        local[i] = 7; // FINDS stack-overflow
}

int main(void) {
#ifdef FIXED
    fill(16);
#else
    fill(64);
#endif
    return 0;
}
