// A type confusion after the reference's CPython bug: a number is freed because the object is taken
// for another kind.
#include <stdlib.h>

struct text { int kind; char *chars; };
struct number { int kind; long value; };

static void release(void *object) {
    struct text *text = object;
#ifdef FIXED
    if (text->kind == 1)
#endif
        free(text->chars); // FINDS unmatched-free
    free(object);
}

int main(void) {
    struct number *number = malloc(sizeof *number);
    number->kind = 2;
    number->value = 0x123456789;
    release(number);
    return 0;
}
