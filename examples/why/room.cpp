// Nobody catches what is thrown when a room is full.
#include <cstdio>
#include <stdexcept>
#include <string>

static int limit(int users) {
    return users - 3;
}

static void check(int wanted, int users) {
    if (wanted > limit(users))
        throw std::runtime_error("no room for " + std::to_string(wanted));
}

int main() {
    check(2, 6);
    check(4, 6);
    std::puts("all have a place");
}
