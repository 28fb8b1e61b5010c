// An optimised program: the function that crashes is inlined into its caller.
#include <stdio.h>

struct item {
    struct item *next;
    int weight;
};

static inline __attribute__((always_inline)) int weight_of(const struct item *item)
{
    return *(const volatile int *)&item->weight;
}

__attribute__((noinline)) int heaviest(const struct item *first, int count)
{
    int most = 0;
    for (int i = 0; i < count; i++, first = first->next) {
        int weight = weight_of(first);
        if (weight > most)
            most = weight;
    }
    return most;
}

int main(int argc, char **argv)
{
    (void)argv;
    struct item last = {NULL, 3}, first = {&last, 5};
    printf("%d\n", heaviest(&first, argc + 2));
    return 0;
}
