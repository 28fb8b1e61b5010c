// The terminating zero has no room.
#include <stdlib.h>
#include <string.h>

int main(void) {
    const char *text = "sixteen letters!";
#ifdef FIXED
    char *p = malloc(strlen(text) + 1);
#else
    char *p = malloc(strlen(text));
#endif
    strcpy(p, text); // FINDS heap-overflow
    free(p);
    return 0;
}
