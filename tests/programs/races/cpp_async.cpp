// finds: data-race
// schedule: random
// std::async: the result is waited for before the shared sum is read, or after.
#include "twin.h"
#include <future>
static long sum;
int main()
{
    auto half = std::async(std::launch::async, [] {
        for (int i = 0; i < 20; i++)
            sum += i;
    });
    CLEAN(half.get();)
    sink((int)sum);
    RACY(half.get();)
}
