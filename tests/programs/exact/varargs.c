/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * Variadic functions with integers, doubles and structures; AL says how many vectors. */
#include "start.h"
#include <stdarg.h>

struct pair { long first, second; };

__attribute__((noinline)) static double total(const char *kinds, ...) {
    va_list list;
    double sum = 0;
    va_start(list, kinds);
    for (; *kinds; kinds++) {
        if (*kinds == 'i') sum += va_arg(list, int);
        if (*kinds == 'd') sum += va_arg(list, double);
        if (*kinds == 'p') {
            struct pair pair = va_arg(list, struct pair);
            sum += pair.first * pair.second;
        }
    }
    va_end(list);
    return sum;
}

int main(void) {
    struct pair pair = {3, 4};
    double sum = 0;
    for (int i = 0; i < 20; i++)
        sum += total("iidpidddddddddiiiip", i, 2, 3.5, pair, i, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0,
                     9.0, 1, 2, 3, 4, pair);
    return (int)sum & 127;
}
