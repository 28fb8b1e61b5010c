// The allocator goes through its heap.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *blocks[200];
    for (int round = 0; round < 3; round++) {
        for (int at = 0; at < 200; at++)
            memset(blocks[at] = malloc(24 + at * 30), at, 24 + at * 30);
        for (int at = 0; at < 200; at++)
            if (at % 3)
                free(blocks[at]);
        malloc_trim(0);
        mallopt(M_MXFAST, 40);
        struct mallinfo2 info = mallinfo2();
        FILE *out = fopen("/dev/null", "w");
        malloc_info(0, out);
        fprintf(out, "%zu\n", info.uordblks);
        fclose(out);
        for (int at = 0; at < 200; at += 3)
            free(blocks[at]);
    }
    return 0;
}
