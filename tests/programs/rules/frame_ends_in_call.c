// build: -O2
// The last thing that a function does is to call another one, with a pointer to a variable of a block that it has
// left: the frame is gone by then.
#include <string.h>
char *held;
static long length;

__attribute__((noinline)) static void fill(char *p) {
    memset(p, 'A', 99);
    p[99] = 0;
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void use(const char *p) {
    length += strlen(p); // FINDS use-after-return
}

#ifdef FIXED
static char lasting[100];
#endif

__attribute__((noinline)) static void ends(void) {
    {
        char buffer[100];
        fill(buffer);
        char *p = buffer;
#ifdef FIXED
        memcpy(lasting, buffer, 100);
        p = lasting;
#endif
        __asm__ volatile("" : "+r"(p) : : "memory");
        held = p;
    }
    use(held);
}

int main(void) {
    ends();
    return length > 99;
}
