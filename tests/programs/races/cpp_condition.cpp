// finds: data-race
// std::condition_variable with a predicate; the racy one fills the value in too late.
#include "twin.h"
#include <condition_variable>
#include <mutex>
#include <thread>
static std::mutex lock;
static std::condition_variable changed;
static bool ready;
static int value;
int main()
{
    std::thread giver([] {
        CLEAN(value = 7;)
        {
            std::lock_guard<std::mutex> guard(lock);
            ready = true;
        }
        changed.notify_one();
        RACY(value = 7;)
    });
    {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [] { return ready; });
    }
    sink(value);
    giver.join();
}
