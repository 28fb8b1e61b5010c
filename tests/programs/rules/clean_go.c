// What a Go program looks like from outside: its runtime looks through all that stands on its stacks.
#include <stdlib.h>

__attribute__((section(".gopclntab"), used)) static const int functions = 1;

__attribute__((noinline)) static int look_through(const int *words, int count) {
    int found = 0;
    for (int at = 0; at < count; at++)
        if (words[at] > 100)
            found++;
    return found;
}

int main(void) {
    int *words = malloc(64 * sizeof *words);
    words[0] = 1;
    int found = look_through(words, 64);
    free(words);
    return found > 64;
}
