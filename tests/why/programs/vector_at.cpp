// An index beyond the end of a vector. build: g++ -g -O0; class: uncaught-exception
#include <cstdio>
#include <vector>
static std::vector<int> squares(int count)
{
    std::vector<int> made;
    for (int i = 0; i < count - 1; i++) // ROOT
        made.push_back(i * i);
    return made;
}
static int last(const std::vector<int> &values, int count)
{
    return values.at(count - 1);
}
int main()
{
    int count = 5;
    std::vector<int> values = squares(count);
    std::printf("%d\n", last(values, count));
    return 0;
}
