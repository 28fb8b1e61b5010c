// finds: data-race
// build: -std=c++20
// Two phases of work that std::barrier keeps apart, or nothing does.
#include "twin.h"
#include <barrier>
#include <thread>
static std::barrier<> phase{2};
static int halves[2], sums[2];
static void work(int self)
{
    for (int round = 0; round < 5; round++) {
        halves[self] = round;
        CLEAN(phase.arrive_and_wait();)
        sums[self] += halves[1 - self];
        CLEAN(phase.arrive_and_wait();)
    }
}
int main()
{
    std::thread first(work, 0), second(work, 1);
    first.join();
    second.join();
}
