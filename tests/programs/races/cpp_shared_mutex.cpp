// finds: data-race
// std::shared_mutex: a writer that takes it for itself, or together with the readers.
#include "twin.h"
#include <mutex>
#include <shared_mutex>
#include <thread>
static std::shared_mutex lock;
static int value;
static void look()
{
    for (int i = 0; i < 20; i++) {
        std::shared_lock<std::shared_mutex> guard(lock);
        sink(value);
    }
}
static void change()
{
    for (int i = 0; i < 20; i++) {
        TWIN(std::shared_lock<std::shared_mutex>, std::unique_lock<std::shared_mutex>) guard(lock);
        value++;
    }
}
int main()
{
    std::thread first(look), second(change);
    first.join();
    second.join();
}
