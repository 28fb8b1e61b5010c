// A flag of one byte that only one path sets.
#include <stdbool.h>
#include <stdio.h>

static int start(int arguments) {
    bool ready;
#ifdef FIXED
    ready = false;
#endif
    if (arguments > 5)
        ready = true;
    if (ready) // FINDS uninitialised-read
        puts("ready");
    return 0;
}

int main(int argc, char **argv) {
    return start(argc);
}
