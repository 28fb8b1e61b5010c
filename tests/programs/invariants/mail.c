// Fields of a reply end in a blank, the last in a parenthesis. One reply has a line end in it, which is neither.
// learn: (a=1_b=2_c=3) | (x=9_y=8) | (k=3_l=4_m=5_n=6) | (q=7)
// fail: (a=1_b=2/c=3_d=4)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *buffer;
static int fields;

static int parse(void) {
    int index = 1;
    do {
        if (buffer[index] < 'a' || buffer[index] > 'z')
            return 1;
        index += 2; // the name and the sign
        index += 1; // the value
        fields++;
    } while (buffer[index++] != ')'); // FAULT: whatever else it is, it counts as the end of a field
    return 0;
}

int main(int argc, char **argv) {
    buffer = strdup(argv[1]);
    for (char *at = buffer; *at; at++)
        *at = *at == '_' ? ' ' : *at == '/' ? '\n' : *at;
    int failed = 0;
    for (int again = 0; again < 20; again++)
        failed |= parse();
    printf("%d fields\n", fields);
    free(buffer);
    return failed || argc != 2;
}
