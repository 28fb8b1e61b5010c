// build: -O2 -pthread -std=c++17
// build: -O2 -pthread -std=c++17 -mcx16 -latomic
// Lock-free structures under real contention: a Treiber stack, fetch_add of every width, compare
// exchange loops, and std::async.
#include "check.h"
#include <atomic>
#include <future>
#include <thread>
#include <vector>
struct Node { Node *next; long value; };
static std::atomic<Node *> head{nullptr};
static std::atomic<uint8_t> a8{0};
static std::atomic<uint16_t> a16{0};
static std::atomic<uint32_t> a32{0};
static std::atomic<uint64_t> a64{0}, bits{0};
int main()
{
    constexpr int threads = 4, each = 3000;
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; t++)
        pool.emplace_back([t] {
            for (int i = 0; i < each; i++) {
                Node *node = new Node{head.load(), long(t) * each + i};
                while (!head.compare_exchange_weak(node->next, node)) {}
                a8++, a16 += 3, a32 += 5, a64.fetch_add(7);
                bits.fetch_xor(1ull << (i % 64));
            }
        });
    for (auto &thread : pool) thread.join();
    long count = 0, sum = 0;
    for (Node *n = head; n; n = n->next) count++, sum += n->value;
    auto later = std::async(std::launch::async, [] { return 6 * 7; });
    auto broken = std::async(std::launch::async, []() -> int { throw std::runtime_error("thrown in a thread"); });
    printf("%ld nodes, sum %ld; %u %u %u %lu %lx; %d\n", count, sum, unsigned(a8), unsigned(a16),
           unsigned(a32), (unsigned long)a64, (unsigned long)bits, later.get());
    try { broken.get(); } catch (const std::exception &e) { printf("%s\n", e.what()); }
    return ok();
}
