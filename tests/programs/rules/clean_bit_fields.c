// Bit fields are stored by reading what was there.
#include <stdio.h>
#include <stdlib.h>

struct flags { unsigned one : 1, two : 3, three : 4; };

int main(void) {
    struct flags *flags = malloc(sizeof *flags), local;
    flags->one = 1;
    flags->two = 5;
    flags->three = 9;
    local.one = 0;
    local.two = 1;
    local.three = 2;
    if (flags->one && flags->two == 5 && flags->three == 9 && !local.one)
        puts("ok");
    free(flags);
    return 0;
}
