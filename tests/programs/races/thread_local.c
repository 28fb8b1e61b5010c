// finds: data-race
// A buffer that each thread should have for itself.
#include "twin.h"
static CLEAN(__thread) char buffer[16];
static void *work(void *unused)
{
    for (int i = 0; i < 50; i++)
        buffer[i % 16] = (char)i;
    sink(buffer[3]);
    return unused;
}
int main(void) { two(work, work); return 0; }
