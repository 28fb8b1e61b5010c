// A branch on a heap word that nothing wrote.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int *p = malloc(sizeof *p);
#ifdef FIXED
    *p = 0;
#endif
    if (*p) // FINDS uninitialised-read
        puts("set");
    free(p);
    return 0;
}
