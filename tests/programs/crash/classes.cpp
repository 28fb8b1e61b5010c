// C++: a member function of a null object, an exception that nobody catches, a pure virtual call.
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace shop {
class Basket {
public:
    int total() const
    {
        int sum = 0;
        for (int price : prices_)
            sum += price;
        return sum;
    }
    void check(const std::string &name) const
    {
        if (name.empty())
            throw std::runtime_error("no name");
    }

private:
    std::vector<int> prices_;
};

struct Shape {
    Shape() { describe(); }
    virtual ~Shape() = default;
    void describe() { draw(); }
    virtual void draw() = 0;
};
struct Circle : Shape {
    void draw() override {}
};

template <typename T> T first(const std::map<std::string, T> &all, const std::string &key)
{
    auto found = all.find(key);
    return found == all.end() ? T() : found->second;
}
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    std::map<std::string, shop::Basket *> baskets{{"anne", new shop::Basket}};
    if (!std::strcmp(kind, "null"))
        return shop::first(baskets, "emma")->total();
    if (!std::strcmp(kind, "throws"))
        shop::first(baskets, "anne")->check("");
    if (!std::strcmp(kind, "pure")) {
        shop::Circle circle;
        circle.draw();
    }
    return 3;
}
