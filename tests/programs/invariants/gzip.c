// Semantic: the descriptor of standard input is not set again after a file was named.
// learn: - | a b | - - | c d e | - a | - b c | - - d | - e
// fail: a -
#include <stdio.h>
#include <string.h>

static int ifd = 0;
static int last;

static int open_input(const char *name) {
    return 3 + (name[0] - 'a') % 7;
}

static void get_method(int from) {
    last = from;
}

int main(int argc, char **argv) {
    int wrong = 0;
    for (int at = 1; at < argc; at++) {
        if (strcmp(argv[at], "-") == 0) {
            get_method(ifd); // FAULT: it should be 0 again
            wrong |= last != 0;
        } else {
            ifd = open_input(argv[at]);
            get_method(ifd);
        }
    }
    return wrong;
}
