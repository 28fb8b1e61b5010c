// A reference into a vector that has grown.
#include <vector>

int main() {
    std::vector<int> numbers{1, 2, 3};
    int &first = numbers[0];
    for (int i = 0; i < 100; i++)
        numbers.push_back(i);
#ifdef FIXED
    return numbers[0] - 1;
#else
    return first - 1 > 1000000; // FINDS dangling-pointer
#endif
}
