// An exception that nobody catches. build: g++ -g -O0; class: uncaught-exception
#include <stdexcept>
#include <string>
#include <cstdio>
static int limit(int users)
{
    return users - 3; // ROOT
}
static void check(int wanted, int users)
{
    if (wanted > limit(users))
        throw std::runtime_error("no room for " + std::to_string(wanted));
}
int main()
{
    check(2, 9);
    check(4, 6);
    std::puts("done");
    return 0;
}
