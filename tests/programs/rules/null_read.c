// Reads through a NULL pointer.
#include <stdlib.h>

int main(void) {
    int here = 0, *p = NULL;
#ifdef FIXED
    p = &here;
#endif
    return *p + here; // FINDS null-pointer
}
