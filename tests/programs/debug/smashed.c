// Stack smashing: a name longer than its buffer overwrites the return address of `convert`, which crashes when it
// returns. The statement to blame is the strcpy, line 12.
#include <stdio.h>
#include <string.h>

static int converted;

static void convert(char **name) {
    struct {
        char text[24];
    } copy;
    strcpy(copy.text, *name);
    converted += (int)strlen(copy.text);
}

static int is_wanted(const char *name) {
    return name[0] != '-';
}

int main(void) {
    char first[] = "short", second[200];
    memset(second, 'x', sizeof second - 1);
    second[sizeof second - 1] = 0;
    char *names[] = {first, second, 0};
    for (char **name = names; *name; name++)
        if (is_wanted(*name))
            convert(name);
    printf("%d\n", converted);
    return 0;
}
