// Memory: a long name runs over into the mode, which is then never used.
// learn: a 1 | bc 2 | def 3 | ghij 4 | klmno 5 | pqrstu 6 | v 7
// fail: abcdefghijkl 7
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct header {
    char name[8];
    char mode[4];
    char type;
} header;

static char out[sizeof header];

static void set_mode(int mode) {
    memset(header.mode, '0' + mode, sizeof header.mode);
}

static void set_name(const char *name) {
    for (int at = 0;; at++) {
        header.name[at] = name[at]; // FAULT: the name may be longer than its room
        if (name[at] == '\0')
            break;
    }
}

int main(int argc, char **argv) {
    for (int again = 0; again < 5; again++) {
        set_mode(atoi(argv[2]));
        set_name(argv[1]);
        header.type = 'f';
        memcpy(out, &header, sizeof header);
    }
    printf("%.8s\n", out);
    return out[8] != '0' + atoi(argv[2]) || argc != 3;
}
