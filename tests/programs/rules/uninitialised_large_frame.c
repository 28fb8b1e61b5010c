// A counter beside a large buffer on the stack is never set.
#include <stdio.h>
#include <string.h>

static void wipe(void) {
    char room[4000];
    memset(room, 0, sizeof room);
}

static int count(const char *text) {
    char copy[1000];
    int letters;
#ifdef FIXED
    letters = 0;
#endif
    strcpy(copy, text);
    for (char *at = copy; *at; at++)
        letters++;
    if (letters > 100) // FINDS uninitialised-read
        return 1;
    return 0;
}

int main(void) {
    wipe();
    return count("text");
}
