// An exception is caught, and another one is thrown. build: g++ -g -O0; class: uncaught-exception
#include <cstdio>
#include <stdexcept>
static int parse(const char *text)
{
    if (text[0] == '-')
        throw std::invalid_argument("below zero");
    return text[0] - '0';
}
static int load(const char *text)
{
    try {
        return parse(text);
    } catch (const std::invalid_argument &) {
        throw std::runtime_error("the configuration is wrong"); // ROOT
    }
}
int main()
{
    std::printf("%d\n", load("4"));
    std::printf("%d\n", load("-4"));
    return 0;
}
