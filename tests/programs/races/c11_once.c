// finds: data-race
// C11 call_once, or a flag that both threads look at.
#include "twin.h"
#include <threads.h>
static once_flag once = ONCE_FLAG_INIT;
static int made, value;
static void make(void) { value = 7; }
static int work(void *unused)
{
    (void)unused;
    TWIN(if (!made) { made = 1; make(); }, call_once(&once, make));
    sink(value);
    return 0;
}
int main(void)
{
    thrd_t threads[2];
    for (int i = 0; i < 2; i++)
        thrd_create(&threads[i], work, NULL);
    for (int i = 0; i < 2; i++)
        thrd_join(threads[i], NULL);
    return 0;
}
