// A switch by jump table, after the example of DrDebug: what the case computes depends on what was read.
// build: gcc -g -O1 -fno-tree-switch-conversion
// ask: --at switch.c:34 --value w --kind full
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static int letter(const char *text) {
    int sum = 0;
    for (const char *at = text; *at; at++)
        sum += *at;
    return sum % 8;
}

__attribute__((noinline)) static int compute(const char *text, int d) {
    int w = 0;
    switch (letter(text)) {
    case 0: w = d + 2; break;
    case 1: w = d - 2; break;
    case 2: w = d * 3; break;
    case 3: w = d << 4; break;
    case 4: w = d ^ 9; break;
    case 5: w = d / 7; break;
    case 6: w = d | 64; break;
    case 7: w = -d; break;
    }
    return w;
}

int main(int argc, char **argv) {
    const char *text = argc > 1 ? argv[1] : "a long enough text";
    int d = 40 + argc;
    volatile int w = compute(text, d);
    if (w != 42)
        printf("%d\n", w);
    return 0;
}
