// finds: data-race
// One thread appends to a vector, another reads an element of it, with a lock or without.
#include "twin.h"
#include <mutex>
#include <thread>
#include <vector>
static std::mutex lock;
static std::vector<int> values{1, 2, 3};
int main()
{
    std::thread grower([] {
        for (int i = 0; i < 20; i++) {
            std::lock_guard<std::mutex> guard(lock);
            values.push_back(i);
        }
    });
    for (int i = 0; i < 20; i++) {
        CLEAN(std::lock_guard<std::mutex> guard(lock);)
        sink(values[1]);
    }
    grower.join();
}
