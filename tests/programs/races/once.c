// finds: data-race
// A table that is made on first use, by pthread_once or by looking at a flag.
#include "twin.h"
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int table[8], made;
static void make(void)
{
    for (int i = 0; i < 8; i++)
        table[i] = i;
    made = 1;
}
static void *work(void *unused)
{
    TWIN(if (!made) make(), pthread_once(&once, make));
    sink(table[3]);
    return unused;
}
int main(void) { two(work, work); return 0; }
