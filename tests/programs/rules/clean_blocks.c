// build: -O2
// Blocks that end alike, so that compilers may make one of what they do last; texts that are made from their end.
#include <stdio.h>
#include <string.h>
static char out[4096];

__attribute__((noinline)) static void put(const char *text, int size, int kind, int more) {
    snprintf(out, sizeof out, "%.*s %d %d", size, text, kind, more);
}

__attribute__((noinline)) static void tell(int kind, const char *given) {
    if (kind == 1) {
        char text[32];
        memset(text, 'a', sizeof text);
        put(text, 32, kind + 1, kind * 3);
        put(text, 30, kind + 2, kind * 5);
    } else if (kind == 2) {
        char other[64];
        memset(other, 'b', sizeof other);
        put(other, 64, kind + 1, kind * 3);
        put(other, 30, kind + 2, kind * 5);
    } else {
        put(given, 3, kind + 1, kind * 3);
        put(given, 3, kind + 2, kind * 5);
    }
}

__attribute__((noinline)) static long number(unsigned long value) {
    char digits[32], name[48];
    char *at = digits + sizeof digits;
    memset(name, 'n', sizeof name);
    do {
        *--at = '0' + value % 10;
        value /= 10;
    } while (value);
    memcpy(name, at, digits + sizeof digits - at);
    put(name, 48, 1, 2);
    put(at, digits + sizeof digits - at, 1, 2);
    return name[0] + name[47];
}

int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < 9; i++) {
        tell(i % 3 + argc - 1, argv[0]);
        sum += number(i * 987654321UL);
    }
    return sum == 7;
}
