// A pointer from before a realloc that happened to leave the block where it was.
// screen: blind
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *text = malloc(20);
    strcpy(text, "some text");
    char *word = text + 5;
    text = realloc(text, 2000);
#ifdef FIXED
    word = text + 5;
#endif
    word[0] = 'n'; // FINDS dangling-pointer
    free(text);
    return 0;
}
