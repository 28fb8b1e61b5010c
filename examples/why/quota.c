/* A quota that is too small: the program gives up in a function that does nothing else. */
#include <stdio.h>
#include <stdlib.h>

static void die(const char *why) {
    fprintf(stderr, "quota: %s\n", why);
    exit(3);
}

static int quota(int users) {
    return users * 2;
}

int main(void) {
    int wanted = 7;
    int limit = quota(1);
    if (wanted > limit)
        die("too many");
    return 0;
}
