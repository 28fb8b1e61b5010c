// finds: data-race
// A value is written before or after a promise is kept, which another thread waits for.
#include "twin.h"
#include <future>
#include <thread>
static int value;
int main()
{
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread giver([&] {
        CLEAN(value = 7;)
        promise.set_value(1);
        RACY(value = 7;)
    });
    future.get();
    sink(value);
    giver.join();
}
