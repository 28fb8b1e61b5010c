// The address of a local variable outlives its function.
#include <stdlib.h>

static int *saved;

__attribute__((noinline)) static void keep(void) {
    int local[4] = { 1, 2, 3, 4 };
    saved = local;
}

__attribute__((noinline)) static int use(void) {
    return saved[2]; // FINDS use-after-return
}

int main(void) {
    keep();
#ifdef FIXED
    int here[4] = { 1, 2, 3, 4 };
    saved = here;
#endif
    return use() > 100000;
}
