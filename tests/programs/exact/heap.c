/* build: -O1 -static
 * malloc, realloc, calloc and free of many sizes in a random order. */
#include <stdlib.h>
#include <string.h>

int main(void) {
    void *kept[32] = {0};
    unsigned seed = 1, sum = 0;
    for (int i = 0; i < 300; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned slot = seed >> 16 & 31, size = (seed >> 8) % 3000 + 1;
        if (i % 3 == 0) free(kept[slot]), kept[slot] = calloc(1, size);
        else kept[slot] = realloc(kept[slot], size);
        memset(kept[slot], i, size);
        sum += ((unsigned char *)kept[slot])[size / 2];
    }
    for (int i = 0; i < 32; i++) free(kept[i]);
    return sum & 127;
}
