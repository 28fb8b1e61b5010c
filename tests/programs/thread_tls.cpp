// build: -O1 -pthread -std=c++17
// build: -O1 -pthread -std=c++17 -static
// Thread-local storage of every model: initial-exec, dynamic with constructors and destructors,
// aligned, large, and read through fs: prefixes by hand (arch_prctl keeps the base).
#include "check.h"
#include <asm/prctl.h>
#include <mutex>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <vector>
static std::mutex lock;
static int constructed, destructed;
struct Counted {
    std::string text;
    Counted() : text("fresh") { std::lock_guard hold(lock); constructed++; }
    ~Counted() { std::lock_guard hold(lock); destructed++; }
};
static thread_local Counted counted;
alignas(64) static thread_local char aligned[64];
static thread_local char large[20000];
static __thread int plain = 41;
int main()
{
    std::vector<std::thread> pool;
    for (int i = 0; i < 10; i++)
        pool.emplace_back([i] {
            CHECK(counted.text == "fresh");
            counted.text += std::to_string(i);
            CHECK(reinterpret_cast<uintptr_t>(aligned) % 64 == 0);
            for (char c : large) CHECK(c == 0);
            memset(large, i + 1, sizeof large);
            plain += i;
            CHECK(plain == 41 + i);
            unsigned long base, self;
            syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
            __asm__("mov %%fs:0, %0" : "=r"(self));
            CHECK(base == self && base == (unsigned long)pthread_self());
        });
    for (auto &t : pool) t.join();
    printf("constructed %d destructed %d plain %d\n", constructed, destructed, plain);
    unsigned long gs = 1;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
    CHECK(gs == 0);
    static unsigned long words[2] = {0xfeedface, 0xcafe};
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, words) == 0);
    unsigned long through;
    __asm__ volatile("mov %%gs:8, %0" : "=r"(through));
    CHECK(through == 0xcafe);
    syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
    CHECK(gs == (unsigned long)words);
    return ok();
}
