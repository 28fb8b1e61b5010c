/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * Stack frames of changing size: alloca and variable-length arrays in recursion. */
#include "start.h"

__attribute__((noinline)) static int sum(const int *from, int count) {
    int total = 0;
    for (int i = 0; i < count; i++) total += from[i];
    return total;
}

__attribute__((noinline)) static int nest(int depth) {
    int variable[depth + 1];
    int *more = __builtin_alloca(sizeof(int) * (depth * 3 % 17 + 1));
    for (int i = 0; i <= depth; i++) variable[i] = i * depth;
    more[0] = depth;
    return sum(variable, depth + 1) + more[0] + (depth ? nest(depth - 1) : 0);
}

int main(void) {
    return nest(30) & 127;
}
