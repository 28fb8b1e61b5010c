// longjmp leaves frames without a return; their successors are other frames.
#include <setjmp.h>
#include <stdlib.h>

static jmp_buf back;
static int *current;

__attribute__((noinline)) static void deep(int level) {
    int here[4] = { level };
    current = here;
    if (level == 0)
        longjmp(back, 1);
    deep(level - 1);
    current = here;
}

__attribute__((noinline)) static int sum(void) {
    int here[4] = { 1, 2, 3, 4 }, total = 0;
    current = here;
    for (int i = 0; i < 4; i++)
        total += current[i];
    return total;
}

int main(void) {
    if (setjmp(back) == 0)
        deep(5);
    return sum() != 10;
}
