// A switch by jump table: what comes after it does not depend on which case was taken. That is only
// known where the jump was seen to lead.
// build: gcc -g -O1 -fno-tree-switch-conversion
// ask: --at switch.c:39 --value after --kind full
#include <stdio.h>
#include <stdlib.h>

static volatile int chosen;

__attribute__((noipa)) static int letter(const char *text) {
    int sum = 0;
    for (const char *at = text; *at; at++)
        sum += *at; /* not needed for what comes after the switch */
    return sum % 8;
}

__attribute__((noipa)) static int compute(const char *text, int d) {
    switch (letter(text)) {
    case 0: chosen = d + 2; break;
    case 1: chosen = d - 2; break;
    case 2: chosen = d * 3; break;
    case 3: chosen = d << 4; break;
    case 4: chosen = d ^ 9; break;
    case 5: chosen = d / 7; break;
    case 6: chosen = d | 64; break;
    case 7: chosen = -d; break;
    }
    volatile int twice = d;
    twice += d;
    return twice;
}

int main(int argc, char **argv) {
    (void)argv;
    const char *text = "a long enough text";
    int d = 40 + argc;
    int result = compute(text, d);
    volatile int after = result;
    printf("%d %d\n", after, chosen);
    return 0;
}
