// finds: data-race
// build: -std=c++20
// std::binary_semaphore and std::latch; the racy one writes after it has released.
#include "twin.h"
#include <latch>
#include <semaphore>
#include <thread>
static std::binary_semaphore given{0};
static std::latch both{2};
static int value, other;
int main()
{
    std::thread giver([] {
        CLEAN(value = 7;)
        given.release();
        RACY(value = 7;)
        other = 8;
        both.count_down();
    });
    given.acquire();
    sink(value);
    both.arrive_and_wait();
    sink(other);
    giver.join();
}
