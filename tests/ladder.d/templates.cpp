// Makes a C++ compiler work: containers, algorithms, regular expressions, variants.
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <variant>
#include <vector>
template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<1> { static constexpr long value = 1; };
template <> struct Fib<0> { static constexpr long value = 0; };
using Value = std::variant<int, std::string, std::vector<double>>;
std::map<std::string, Value> build(const std::string &text)
{
    std::map<std::string, Value> result;
    std::regex pattern("(\\w+)=(\\d+)");
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
        result[(*it)[1]] = std::stoi((*it)[2]);
    result["fib"] = static_cast<int>(Fib<40>::value % 1000);
    return result;
}
double total(std::vector<Value> values)
{
    std::sort(values.begin(), values.end());
    double sum = 0;
    for (auto &v : values) std::visit([&](auto &&x) { if constexpr (std::is_same_v<std::decay_t<decltype(x)>, int>) sum += x; }, v);
    return sum;
}
