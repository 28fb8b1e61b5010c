// An address is formed from an index that nothing wrote.
// screen: blind
#include <stdlib.h>

static int table[256];

int main(void) {
    unsigned char *index = malloc(2);
#ifdef FIXED
    index[1] = 0;
#endif
    int value = table[index[1]]; // FINDS uninitialised-read
    free(index);
    return value;
}
