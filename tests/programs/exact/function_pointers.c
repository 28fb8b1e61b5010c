/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * Calls through tables of functions, and functions that return functions. */
#include "start.h"

typedef int operation(int, int);
static int add(int a, int b) { return a + b; }
static int subtract(int a, int b) { return a - b; }
static int multiply(int a, int b) { return a * b; }
static int both(int a, int b) { return a & b; }
static operation *const volatile operations[] = {add, subtract, multiply, both};

__attribute__((noinline)) static operation *choose(int number) {
    return operations[number & 3];
}

__attribute__((noinline)) static int fold(operation *with, const int *from, int count) {
    int result = 1;
    for (int i = 0; i < count; i++) result = with(result, from[i]);
    return result;
}

int main(void) {
    int numbers[32], result = 0;
    for (int i = 0; i < 32; i++) numbers[i] = choose(i)(i, 7);
    for (int i = 0; i < 8; i++) result ^= fold(choose(i), numbers, 32 - i);
    return result & 127;
}
