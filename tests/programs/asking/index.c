/* An address of two parts, of which one is wrong: `i` makes it the index, anything else the pointer. */
#include <stdlib.h>
static long far(void) {
    return 1L << 40; // index
}
static char *nowhere(void) {
    return (char *)16; // pointer
}
static volatile char sink;
int main(int argc, char **argv) {
    char *base = malloc(64);
    long index = 3;
    if (argv[1][0] == 'i')
        index = far();
    else
        base = nowhere();
    sink = base[index];
    return 0;
}
