// The freed block's memory belongs to another one by now: the address is fine, the pointer is not.
// screen: blind
#include <stdlib.h>

int main(void) {
    int *old = malloc(48);
    old[0] = 1;
    free(old);
    int *new = malloc(48);
    new[0] = 2;
#ifdef FIXED
    int value = new[0];
#else
    int value = old[0]; // FINDS dangling-pointer
#endif
    free(new);
    return value - 2;
}
