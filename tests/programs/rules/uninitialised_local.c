// A branch on a local variable that only one path sets.
#include <stdio.h>

static int pick(int which) {
    int result;
#ifdef FIXED
    result = 0;
#endif
    if (which == 3)
        result = 1;
    if (result) // FINDS uninitialised-read
        return 4;
    return 5;
}

int main(void) {
    return pick(2) > 100;
}
