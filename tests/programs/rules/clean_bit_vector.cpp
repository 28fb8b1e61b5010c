// build: -O1
// Words that are written and read bit by bit, at places that only the run tells.
#include <cstdlib>
#include <vector>

__attribute__((noinline)) static int count(const std::vector<bool> &bits) {
    int sum = 0;
    for (size_t at = 0; at < bits.size(); at++)
        if (bits[at])
            sum++;
    return sum;
}

int main(int argc, char **) {
    int sum = 0;
    for (int length = 1; length < 70; length++) {
        std::vector<bool> bits;
        for (int at = 0; at < length; at++)
            bits.push_back((at + argc) % 3 == 0);
        bits.insert(bits.begin() + length / 2, argc == 1);
        sum += count(bits);
    }
    return sum == 0;
}
