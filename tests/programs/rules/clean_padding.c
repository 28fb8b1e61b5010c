// Padding is copied and never looked at.
#include <stdlib.h>
#include <string.h>

struct padded { char letter; long number; char last; };

int main(void) {
    struct padded *one = malloc(sizeof *one), *other = malloc(sizeof *other);
    one->letter = 'a';
    one->number = 3;
    one->last = 'z';
    *other = *one;
    struct padded local = *other, again;
    memcpy(&again, &local, sizeof again);
    int sum = again.letter + again.number + again.last;
    free(one);
    free(other);
    return sum > 100000;
}
