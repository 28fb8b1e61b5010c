// depth: 2, a race
// Two threads increment a counter once, long apart.
#include "expose.h"
static volatile long counter;
static void *soon(void *unused) { counter++; return unused; }
static void *late(void *unused) { work(LONG); counter++; return unused; }
int main(void) { TOGETHER(soon, late); return verdict(counter != 2); }
