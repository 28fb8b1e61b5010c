// A block whose address only its user is told lives on, whatever else is freed.
#include <stdlib.h>
#include <string.h>

static void *slab;

__attribute__((noinline)) static void forget(void *nothing) {
    free(nothing);
    free(realloc(nothing, 40));
}

int main(void) {
    if (posix_memalign(&slab, 1024, 1008))
        return 1;
    memset(slab, 0, 1008);
    forget(NULL);
    ((char *)slab)[1007] = 1;
    forget(NULL);
    int sum = ((char *)slab)[1007] + ((char *)slab)[0];
    free(slab);
    return sum != 1;
}
