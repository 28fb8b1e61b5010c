// A string that does not fit into its global buffer.
#include <string.h>

static char name[16];
static char other[64];

__attribute__((noinline)) static void set(char *to, const char *text)
{
    while (*text)
        *to++ = *text++; // FINDS global-overflow
    *to = 0; // FINDS global-overflow
}

int main(void)
{
#ifdef FIXED
    set(name, "fits in");
#else
    set(name, "far too long for it");
#endif
    set(other, "and so does this");
    return name[0] == other[0];
}
