// A shape that no factory knows. build: g++ -g -O0; class: null-pointer
#include <cstdio>
#include <cstring>
struct shape { virtual ~shape() = default; virtual int area() const = 0; };
struct square : shape { int area() const override { return 4; } };
static shape *make(const char *name)
{
    if (std::strcmp(name, "square") == 0)
        return new square;
    return nullptr; // ROOT
}
int main()
{
    std::printf("%d\n", make("square")->area());
    std::printf("%d\n", make("circle")->area());
    return 0;
}
