// build: -O1
// rules: leaks
// The only pointers to blocks come out of conditional moves and of a compare-and-exchange.
#include <stdatomic.h>
#include <stdlib.h>

static char *volatile first, *volatile second;
static char *_Atomic once;

__attribute__((noinline)) static void keep(int count) {
    char *one = malloc(50), *two = malloc(60), *nobody = NULL; // LOSES definite-leak
    char *yes = one, *no = one;
    __asm__("cmp $1, %1\n\tcmove %2, %0" : "+r"(yes) : "r"(count), "r"(two) : "cc");
    __asm__("cmp $1, %1\n\tcmovne %2, %0" : "+r"(no) : "r"(count), "r"(two) : "cc");
    first = yes;
    second = no;
    atomic_compare_exchange_strong(&once, &nobody, malloc(100));
}

int main(int count, char **arguments) {
    keep(count);
#ifndef FIXED
    first = second = NULL;
#endif
    exit(once == NULL);
}
