// build: -O0
// Arrays whose last index does not fit into the signed form of as many bytes as it takes.
#include <string.h>

__attribute__((noinline)) static void fill(char *p, unsigned long size) {
    memset(p, 1, size); // FINDS stack-overflow
}

int main(void) {
    char guard[64], narrow[200], more[64], wide[40000];
#ifdef FIXED
    fill(narrow, 200), fill(wide, 40000);
#else
    fill(narrow, 201), fill(wide, 40001);
#endif
    fill(guard, 64), fill(more, 64);
    return narrow[0] + wide[0] + guard[0] + more[0] != 4;
}
