// A counter beside a large buffer on the stack is never set.
#include <stdio.h>
#include <string.h>

static int count(const char *text) {
    char copy[1000];
    int letters;
#ifdef FIXED
    letters = 0;
#endif
    strcpy(copy, text);
    for (char *at = copy; *at; at++)
        letters++;
    if (letters > 2) // FINDS uninitialised-read
        return 1;
    return 0;
}

int main(void) {
    return count("text") > 5;
}
