// A name is copied into a local buffer that is too short; the frame itself is not left.
// build: -fno-stack-protector -U_FORTIFY_SOURCE
#include <string.h>

static int describe(const char *name) {
    char wide[64] = "";
    char label[12];
    strcpy(label, name); // FINDS stack-overflow
    return label[0] + wide[0];
}

int main(void) {
#ifdef FIXED
    return describe("short") == 0;
#else
    return describe("a name of more than that") == 0;
#endif
}
