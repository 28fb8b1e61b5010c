// Memory: a buffer is freed and its pointer kept; the next line goes to freed memory, which another has.
// learn: abc de f | aa bb cc dd ee ff gg hh | i j k l m n | one two | x y z w | hello world again | p q
// fail: abc ! de f
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *field;
static char *other;

static int get_field(const char *text) {
    if (!field)
        field = malloc(32);
    if (text[0] == '!')
        return -1;
    strncpy(field, text, 31); // FAULT: not its own memory any more
    field[31] = '\0';
    return strlen(field);
}

int main(int argc, char **argv) {
    int sum = 0;
    other = NULL;
    for (int at = 1; at < argc; at++) {
        int length = get_field(argv[at]);
        if (length < 0) {
            free(field); // and keeps the pointer
            other = malloc(32);
            strcpy(other, "precious");
            continue;
        }
        sum += length;
    }
    if (other && strcmp(other, "precious") != 0) {
        fprintf(stderr, "lost: %s\n", other);
        return 1;
    }
    printf("%d\n", sum);
    return 0;
}
