// rules: leaks
// A function returns without freeing what only it knows.
#include <stdlib.h>
#include <string.h>

static int measure(const char *text) {
    char *copy = malloc(strlen(text) + 1); // LOSES definite-leak
    strcpy(copy, text);
    int length = copy[0] == 'x' ? 1 : 2;
#ifdef FIXED
    free(copy);
#endif
    return length;
}

int main(void) {
    int length = measure("some text");
    length += measure("other text");
    exit(length > 100);
}
