// Every kind of C++ value: namespaces, bases (virtual ones too), references, templates, statics
// of classes, strings and vectors.
#include <string>
#include <vector>

volatile int sink;
__attribute__((noinline)) void stop_here() { sink = sink + 1; }

namespace shop {
int open_count = 3;
namespace {
int hidden_count = 4;
}

struct base {
    int id;
    virtual ~base() = default;
};

struct other {
    long weight = 77;
};

struct virtual_base {
    int deep = 5;
};

struct left : virtual virtual_base {
    int l = 1;
};
struct right : virtual virtual_base {
    int r = 2;
};
struct diamond : left, right {
    int d = 3;
};

enum class level : unsigned char { low = 1, high = 200 };

template <typename T> struct box {
    T content;
    static int made;
};
template <typename T> int box<T>::made = 6;

class item : public base, public other {
  public:
    static int total;
    std::string name;
    std::vector<int> sizes;
    level rank = level::high;
    box<double> inside{2.5};

    __attribute__((noinline)) int price(int factor, const item &rival) {
        int result = id * factor;
        const int &reference = rival.id;
        auto add = [&](int more) { return more + result; };
        diamond gem;
        stop_here();
        return add(reference) + gem.deep;
    }
};
int item::total = 11;
} // namespace shop

int main() {
    shop::item first;
    first.id = 21;
    first.name = "lamp";
    first.sizes = {3, 1, 4, 1, 5};
    shop::item second;
    second.id = 34;
    second.name = "a name that is too long to be kept in place";
    shop::box<int>::made += 1;
    int price = first.price(2, second);
    return price + shop::open_count + shop::hidden_count + shop::item::total +
                   shop::box<int>::made ==
           0;
}
