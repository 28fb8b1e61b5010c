// finds: data-race
// A statistics counter, plain or by fetch-and-add.
#include "twin.h"
#include <stdatomic.h>
static TWIN(long, _Atomic long) counter;
static void *work(void *unused)
{
    for (int i = 0; i < 100; i++)
        counter++;
    return unused;
}
int main(void) { two(work, work); return counter == 0; }
