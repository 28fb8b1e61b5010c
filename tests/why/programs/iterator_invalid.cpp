// A reference into a vector that has grown. build: g++ -g -O0; class: use-after-free
#include <cstdio>
#include <string>
#include <vector>
int main()
{
    std::vector<std::string *> names;
    std::string one = "one", two = "two";
    names.push_back(&one);
    std::string *&first = names.front();
    for (int i = 0; i < 100; i++)
        names.push_back(&two); // ROOT
    std::vector<long> noise(1, 0x4141414141414141);
    std::printf("%zu\n", first->size());
    return 0;
}
