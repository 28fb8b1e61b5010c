// A freed string is given to strlen: the access is in the library, the fault is here.
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *text = malloc(32);
    strcpy(text, "some text");
#ifdef FIXED
    size_t length = strlen(text);
    free(text);
#else
    free(text);
    size_t length = strlen(text + 1); // FINDS dangling-pointer
#endif
    return length > 100;
}
