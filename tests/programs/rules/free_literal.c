// Frees a string literal that stands where an allocated string usually does.
#include <stdlib.h>
#include <string.h>

static char *greeting(int known) {
#ifdef FIXED
    return strdup(known ? "hello again" : "hello");
#else
    return known ? strdup("hello again") : "hello";
#endif
}

int main(void) {
    char *text = greeting(0);
    free(text); // FINDS unmatched-free
    return 0;
}
