// Lines and functions that mean several pieces of code: templates, inlining, loops, lines
// without code, namespaces and overloads.
volatile int sink;

namespace shop {
template <typename T> T twice(T value) {
    T doubled = value + value;

    return doubled;
}

static inline __attribute__((always_inline)) int add(int value) {
    sink = sink + value;
    return sink;
}

struct counter {
    int count = 0;
    void step(int by) {
        count += by;
        sink = count;
    }
    void step(double by) { count += (int)by; }
};
} // namespace shop

int loops(int limit) {
    int total = 0;
    for (int i = 0; i < limit; i++) {
        total += shop::add(i);
    }
    // nothing here

    return total;
}

int second(int value) { return shop::add(value) + 1; }

int main() {
    shop::counter counter;
    counter.step(3);
    counter.step(2.5);
    return shop::twice(loops(4)) + (int)shop::twice(2.5) + second(1) + counter.count == 0;
}
