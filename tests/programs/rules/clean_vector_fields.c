// build: -O1 -msse2
// Bit fields that are changed in a vector register, above whose two bytes stands what nobody wrote.
#include <stdlib.h>
#include <string.h>

struct op { long next; unsigned type : 9, more : 7; unsigned short flags; };

__attribute__((noinline)) static void change(unsigned short *field, const void *text, const unsigned short *mask) {
    unsigned out;
    __asm__ volatile("movdqu (%2), %%xmm1\n\tpinsrw $0, (%1), %%xmm1\n\tpinsrw $0, (%3), %%xmm0\n\t"
                     "pand %%xmm0, %%xmm1\n\tmovd %%xmm1, %0"
                     : "=r"(out) : "r"(field), "r"(text), "r"(mask) : "xmm0", "xmm1", "memory");
    *field = out;
}

int main(void) {
    struct op *op = calloc(1, sizeof *op);
    char *text = malloc(100);
    unsigned short mask = 0xff0f;
    strcpy(text, "short");
    op->flags = 0x1234;
    change(&op->flags, text, &mask);
    if (op->flags & 0x10) return 1;
    if (op->flags != 0x1204) return 2;
    free(text);
    free(op);
    return 0;
}
