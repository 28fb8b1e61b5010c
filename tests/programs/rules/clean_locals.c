// What is right with local variables: ends of arrays as limits, backwards loops, structs in structs,
// blocks that share room, arrays of a length known late, alloca, optimised and not.
// build: -O2 -fno-stack-protector
#include <alloca.h>
#include <stdio.h>
#include <string.h>

struct pair {
    int left[4], right[4];
};

__attribute__((noinline)) static int fill(int *from, int *to, int value) {
    int count = 0;
    while (to > from)
        *--to = value + count++;
    return count;
}

__attribute__((noinline)) static int total(const int *numbers, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += numbers[i];
    return sum;
}

__attribute__((noinline)) static int work(int n) {
    int first[16], second[16];
    struct pair pair, copy;
    int sum = fill(first, first + 16, n) + fill(second, &second[16], n);
    memset(&pair, 0, sizeof pair);
    fill(pair.left, pair.left + 4, 1);
    fill(pair.right, pair.right + 4, 2);
    copy = pair;
    sum += total(copy.right, 4) + total((int *)&copy, 8);
    for (int round = 0; round < 3; round++) {
        if (round % 2) {
            char text[40];
            snprintf(text, sizeof text, "round %d", round);
            sum += strlen(text);
        } else {
            long words[10];
            memset(words, round, sizeof words);
            sum += words[9] != 0;
        }
    }
    int late[n + 1];
    char *made = alloca(n + 5);
    memset(made, 1, n + 5);
    fill(late, late + n + 1, 3);
    for (int i = 15; i >= 0; i--)
        sum += first[i] - second[15 - i];
    return sum + late[n] + made[n];
}

int main(void) {
    return work(7) + work(3) == 0;
}
