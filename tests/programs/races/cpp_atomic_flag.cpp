// finds: data-race
// A message behind a std::atomic flag, or behind a plain one.
#include "twin.h"
#include <atomic>
static TWIN(volatile bool, std::atomic<bool>) ready;
static int message;
static void *give(void *unused) { message = 7; ready = true; return unused; }
static void *take(void *unused)
{
    for (int i = 0; i < 1000 && !ready; i++)
        sched_yield();
    if (ready)
        sink(message);
    return unused;
}
int main() { two(give, take); }
