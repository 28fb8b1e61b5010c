// build: -O2
// Containers, strings, exceptions and virtual calls.
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Base {
    virtual ~Base() = default;
    virtual int value() const { return 1; }
};
struct Derived : Base {
    std::string name = "a name that is too long for the small buffer";
    int value() const override { return static_cast<int>(name.size()); }
};

int main() {
    std::map<std::string, std::vector<int>> map;
    for (int i = 0; i < 50; i++)
        map["key" + std::to_string(i % 7)].push_back(i);
    std::vector<std::unique_ptr<Base>> all;
    for (int i = 0; i < 10; i++)
        all.push_back(i % 2 ? std::make_unique<Base>() : std::make_unique<Derived>());
    int sum = 0;
    for (const auto &one : all)
        sum += one->value();
    for (const auto &[key, list] : map)
        sum += list.size() + key.size();
    try {
        throw std::runtime_error(std::string(100, 'x'));
    } catch (const std::exception &error) {
        sum += error.what()[0];
    }
    map.erase("key3");
    return sum == 0;
}
