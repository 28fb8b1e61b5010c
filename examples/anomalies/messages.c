// Messages have 74 bytes, and `read` gives what there is: the last is short, and what is left of the one
// before is taken for its end.
// learn: 3 0 | 5 0 | 8 0 | 13 0 | 4 0 | 10 0 | 7 0 | 9 0 | 12 0 | 6 0
// fail: 6 40
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE = 74 };

static char message[MESSAGE];

static int receive(int from) {
    return read(from, message, MESSAGE) > 0; // FAULT: how much it was is not looked at
}

int main(int argc, char **argv) {
    int whole = atoi(argv[1]), rest = atoi(argv[2]), ends[2];
    char text[MESSAGE * 16];
    memset(text, 'x', sizeof text);
    if (argc != 3 || pipe(ends) != 0)
        return 2;
    if (write(ends[1], text, whole * MESSAGE + rest) < 0)
        return 2;
    close(ends[1]);
    long sum = 0;
    while (receive(ends[0]))
        for (int at = 0; at < MESSAGE; at++)
            sum += message[at];
    printf("%ld\n", sum);
    return 0;
}
