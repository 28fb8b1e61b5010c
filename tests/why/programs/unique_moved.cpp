// A pointer that was moved from is used. build: g++ -g -O0; class: null-pointer
#include <cstdio>
#include <memory>
struct engine { int power; };
static std::unique_ptr<engine> installed;
static void install(std::unique_ptr<engine> &made)
{
    installed = std::move(made); // ROOT
}
int main()
{
    auto made = std::make_unique<engine>(engine{90});
    install(made);
    std::printf("%d\n", made->power);
    return 0;
}
