// A plug-in that is loaded, unloaded and replaced by another build of itself.
#ifndef VALUE
#define VALUE 1
#endif
static int calls;
static __thread int local = 100;
__attribute__((constructor)) static void loaded(void) { calls = VALUE; }
int value(void) { return VALUE * 1000 + ++calls + local++ - 100; }
static int small(void) { return 1; }
static int large(void) { return 2; }
static void *choose(void) { return VALUE % 2 ? (void *)small : (void *)large; }
int chosen(void) __attribute__((ifunc("choose")));
