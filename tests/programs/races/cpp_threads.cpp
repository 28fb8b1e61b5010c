// finds: data-race
// std::thread, std::mutex and std::lock_guard around a vector.
#include "twin.h"
#include <mutex>
#include <thread>
#include <vector>
static std::mutex lock;
static std::vector<int> values;
static void work()
{
    for (int i = 0; i < 20; i++) {
        CLEAN(std::lock_guard<std::mutex> guard(lock);)
        values[0] += i;
    }
}
int main()
{
    values.resize(4);
    std::thread first(work), second(work);
    first.join();
    second.join();
}
