// The error path frees, and so does the common end.
#include <stdlib.h>

static int parse(char *buffer, int fail) {
    if (fail) {
#ifndef FIXED
        free(buffer);
#endif
        return -1;
    }
    return 0;
}

int main(void) {
    char *buffer = malloc(300);
    buffer[0] = 'x';
    parse(buffer, 1);
    free(buffer); // FINDS double-free
    return 0;
}
