// build: -O1
// The same in optimised code, addressed from the stack pointer.
static int *saved;

__attribute__((noinline)) static int keep(int seed) {
    volatile int local[8];
    for (int i = 0; i < 8; i++)
        local[i] = seed + i;
    saved = (int *)local;
    return local[3];
}

__attribute__((noinline)) static int use(void) {
    return saved[2]; // FINDS use-after-return
}

int main(void) {
    int value = keep(4);
#ifdef FIXED
    int here[8] = { value };
    saved = here;
#endif
    return use() > 100000 && value;
}
