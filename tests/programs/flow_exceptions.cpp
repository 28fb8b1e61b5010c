// build: -O2 -std=c++17 -pthread -fnon-call-exceptions
// build: -O2 -std=c++17 -pthread -fnon-call-exceptions -static
// C++ exceptions: across frames, rethrown, nested, in threads, through callbacks of C code, out of
// constructors, with destructors in order, std::terminate's handler, and unwinding from signals.
#include "check.h"
#include <csignal>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static int alive;
struct Guard { Guard() { alive++; } ~Guard() { alive--; } };
static int climb(int depth)
{
    Guard guard;
    if (!depth) throw std::runtime_error("top");
    try { return climb(depth - 1) + 1; }
    catch (const std::logic_error &) { return -1; }
}
struct Picky { Guard member; Picky(int n) { if (n % 2) throw std::invalid_argument("odd"); } };
static int compare(const void *a, const void *b)
{
    if (*static_cast<const int *>(a) == 13 || *static_cast<const int *>(b) == 13) throw 13;
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}
static void from_signal(int) { throw std::domain_error("from a handler"); }
int main()
{
    int caught = 0;
    for (int i = 0; i < 200; i++)
        try { climb(i % 40); } catch (const std::exception &e) { caught += !strcmp(e.what(), "top"); }
    CHECK(alive == 0 && caught == 200);
    for (int i = 0; i < 100; i++)
        try { Picky picky(i); } catch (const std::invalid_argument &) { caught++; }
    CHECK(alive == 0 && caught == 250);
    try {
        try { throw std::string("inner"); }
        catch (...) { std::throw_with_nested(std::runtime_error("outer")); }
    } catch (const std::exception &e) {
        try { std::rethrow_if_nested(e); } catch (const std::string &s) { printf("%s in %s\n", s.c_str(), e.what()); }
    }
    int data[] = {5, 9, 13, 1, 4};
    try { qsort(data, 5, sizeof *data, compare); } catch (int n) { printf("through qsort %d\n", n); }
    std::vector<std::thread> pool;
    std::vector<std::exception_ptr> carried(8);
    for (int t = 0; t < 8; t++)
        pool.emplace_back([t, &carried] {
            for (int i = 0; i < 100; i++) try { climb(10); } catch (...) { carried[t] = std::current_exception(); }
        });
    for (auto &thread : pool) thread.join();
    for (auto &one : carried) try { std::rethrow_exception(one); } catch (const std::runtime_error &) { caught++; }
    printf("caught %d\n", caught);
    signal(SIGSEGV, from_signal);
    try { *(volatile int *)24 = 1; } catch (const std::domain_error &e) { printf("%s\n", e.what()); }
    std::function<int(int)> fib = [&](int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); };
    printf("fib %d\n", fib(18));
    return ok();
}
