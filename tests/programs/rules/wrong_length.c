// A length that is most of the address space: the kernel refuses it, and nothing may go through all of that.
// windows: unaddressable-buffer
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    char *text = calloc(64, 1);
    volatile size_t length = 0x5a5a5a5a5a5a5a00;
#ifdef FIXED
    length = 64;
#endif
    (void)!write(1, text, length); // FINDS heap-overflow
    free(text);
    return 0;
}
