// build: -O1 -static
// The standard library: map, string, sort with a lambda, unordered_map, function.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

int main() {
    std::map<std::string, int> counts;
    std::unordered_map<int, std::string> names;
    for (int i = 0; i < 40; i++) {
        std::string name = "name" + std::to_string(i * 7 % 13);
        counts[name] += i;
        names[i] = name;
    }
    std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto &one, const auto &other) { return one.second > other.second; });
    std::function<int(int)> weigh = [&](int by) { return sorted[0].second * by; };
    return (weigh(3) + static_cast<int>(names[17].size())) & 127;
}
