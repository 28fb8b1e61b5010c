// build: -O1 -static-pie -fPIE
// C++ exceptions: thrown through frames with destructors, caught by type, rethrown.
#include <stdexcept>
#include <string>

static int destroyed;
struct Guard {
    ~Guard() { destroyed++; }
};

[[gnu::noinline]] static int dig(int depth) {
    Guard guard;
    if (depth == 0) throw std::out_of_range("the bottom");
    if (depth == 3) {
        try {
            return dig(depth - 1);
        } catch (const std::logic_error &) {
            throw;
        }
    }
    return dig(depth - 1) + 1;
}

int main() {
    int caught = 0;
    try {
        dig(6);
    } catch (const std::out_of_range &error) {
        caught = static_cast<int>(std::string(error.what()).size());
    }
    try {
        throw 5;
    } catch (int number) {
        caught += number;
    }
    return (caught * 10 + destroyed) & 127;
}
