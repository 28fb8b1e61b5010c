// Frees a variable of the stack.
#include <stdlib.h>

int main(void) {
    int local = 3;
    int *p = &local;
#ifdef FIXED
    p = malloc(sizeof *p);
#endif
    free(p); // FINDS unmatched-free
    return 0;
}
