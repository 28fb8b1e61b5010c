/* Stacks of every kind: plain calls, inlining, a signal handler, a callback from libc, a call
 * through a null pointer, an abort. The first argument chooses. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int sink;
static void (*nowhere)(void);

__attribute__((noinline)) void stop_here(int depth) { sink += depth; }

static inline __attribute__((always_inline)) void inlined_inner(int depth) {
    stop_here(depth + 1);
    sink++;
}

static inline __attribute__((always_inline)) void inlined_outer(int depth) {
    inlined_inner(depth + 1);
    sink++;
}

__attribute__((noinline)) void recurse(int depth) {
    if (depth == 0)
        inlined_outer(depth);
    else
        recurse(depth - 1);
    sink++;
}

__attribute__((noinline)) void alloca_frame(int size) {
    char buffer[size];
    memset(buffer, 1, size);
    recurse(3);
    sink += buffer[size / 2];
}

static int compare(const void *left, const void *right) {
    recurse(1);
    return *(const int *)left - *(const int *)right;
}

static void handler(int signal) {
    recurse(signal % 3);
    sink++;
}

__attribute__((noinline)) void through_null(void) {
    nowhere();
    sink++;
}

__attribute__((noinline)) void fail(void) { abort(); }

int main(int argc, char **argv) {
#if KIND == 0
    alloca_frame(100 + argc);
#elif KIND == 1
    int values[] = {3, 1, 2};
    qsort(values, 3, sizeof values[0], compare);
#elif KIND == 2
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
#elif KIND == 3
    through_null();
#else
    fail();
#endif
    return sink == 12345;
}
