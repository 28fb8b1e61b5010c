// Frees a block twice, with an allocator of its own and no C library: no thread-local storage, so that
// whoever works for the guest must do without.
// build: -O1 -fno-builtin -nostdlib -static -fno-stack-protector
static char pool[1 << 16];
static unsigned long used;

__attribute__((noinline)) void *malloc(unsigned long size) {
    void *block = pool + used;
    used += (size + 31) & ~15ul;
    return block;
}

__attribute__((noinline)) void free(void *block) { *(volatile char *)&used = *(char *)&used; }

__attribute__((noinline)) void *realloc(void *block, unsigned long size) { return malloc(size); }

void _start(void) {
    for (int i = 0; i < 100; i++) {
        char *p = malloc(40 + i);
        p = realloc(p, 100);
        free(p);
    }
    char *p = malloc(8);
    free(p);
#ifndef FIXED
    free(p); // FINDS double-free
#endif
    __asm__ volatile("syscall" ::"a"(60), "D"(0));
}
