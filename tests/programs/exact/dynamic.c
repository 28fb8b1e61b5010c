/* build: -O1 -Wl,-z,lazy
 * A dynamically linked program with lazy binding: the loader, relocations, PLT, thread-local
 * storage. */
#include <stdlib.h>
#include <string.h>

static _Thread_local int counter = 5;

int main(void) {
    char *copy = strdup("lazily bound");
    counter += (int)strlen(copy) + abs(-3) + atoi("42");
    free(copy);
    return counter & 127;
}
