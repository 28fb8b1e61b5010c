// build: -O2
// Arguments on the stack, structs by value, variable arguments, alloca.
#include <alloca.h>
#include <stdarg.h>
#include <string.h>

struct large { long words[12]; };

__attribute__((noinline)) static long sum(struct large large, const long *more, int count) {
    const long *words = large.words;
    long total = 0;
    for (int i = 0; i < count; i++)
        total += words[i] + more[i];
    return total;
}

__attribute__((noinline)) static long many(int count, ...) {
    va_list list;
    long total = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        total += va_arg(list, long);
    va_end(list);
    return total;
}

int main(int argc, char **argv) {
    struct large large;
    memset(&large, 0, sizeof large);
    large.words[3] = argc;
    long *more = alloca(sizeof(long) * (12 + argc));
    memset(more, 0, sizeof(long) * (12 + argc));
    long total = sum(large, more, 12) + many(9, 1l, 2l, 3l, 4l, 5l, 6l, 7l, 8l, 9l);
    return total != 45 + argc || argv[0] == 0;
}
