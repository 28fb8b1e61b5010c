// memcpy between regions that overlap.
#include <string.h>

static char text[100] = "some text that is moved";

int main(void) {
    volatile size_t size = 50;
#ifdef FIXED
    memmove(text + 5, text, size);
#else
    memcpy(text + 5, text, size); // FINDS overlapping-copy
#endif
    return 0;
}
