// build: -O2 -std=c++17 -pthread
// C++: futures, a shared mutex, exceptions thrown across threads, random_device, and a map keyed by
// addresses.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

int main()
{
    std::random_device device;
    unsigned seed = device();
    std::mt19937 generator(seed);
    std::printf("seed %08x\n", seed);
    std::shared_mutex mutex;
    std::vector<int> order;
    std::atomic<long> reads{0};
    std::vector<std::future<int>> futures;
    for (int i = 0; i < 5; i++) {
        unsigned work = generator() % 2000;
        futures.push_back(std::async(std::launch::async, [&, i, work] {
            for (volatile unsigned spin = 0; spin < work; spin = spin + 1) {}
            for (int round = 0; round < 20; round++) {
                if (round % 4 == 0) {
                    std::unique_lock lock(mutex);
                    order.push_back(i);
                } else {
                    std::shared_lock lock(mutex);
                    reads += static_cast<long>(order.size());
                }
            }
            if (work % 3 == 0) throw std::runtime_error("divisible");
            return static_cast<int>(work);
        }));
    }
    for (auto &future : futures) {
        try {
            std::printf("work %d\n", future.get());
        } catch (const std::runtime_error &error) {
            std::printf("%s\n", error.what());
        }
    }
    std::map<void *, int> places;
    std::vector<std::unique_ptr<int>> kept;
    for (int i = 0; i < 5; i++) {
        kept.push_back(std::make_unique<int>(i));
        places[kept.back().get()] = i;
    }
    for (auto &[place, number] : places) std::printf("%d at %p\n", number, place);
    std::printf("reads %ld order ", reads.load());
    for (int one : order) std::putchar('a' + one);
    auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    std::printf("\nnow %lld\nok\n", static_cast<long long>(now));
}
