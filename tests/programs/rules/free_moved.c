// Walks a string with the pointer that owns it and frees what is left.
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *name = malloc(16);
    strcpy(name, "  blanks");
    char *at = name;
    while (*at == ' ')
        at++;
#ifdef FIXED
    at = name;
#endif
    free(at); // FINDS unmatched-free
    return 0;
}
