// finds: data-race
// A value behind a std::atomic flag; the racy one sets the flag first.
#include "twin.h"
#include <atomic>
#include <thread>
static std::atomic<bool> ready{false};
static int value;
int main()
{
    std::thread giver([] {
        CLEAN(value = 7;)
        ready.store(true, std::memory_order_release);
        RACY(value = 7;)
    });
    while (!ready.load(std::memory_order_acquire))
        sched_yield();
    sink(value);
    giver.join();
}
