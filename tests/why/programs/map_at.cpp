// A key that was stored under another name. build: g++ -g -O0; class: uncaught-exception
#include <cstdio>
#include <map>
#include <string>
static std::map<std::string, int> ports;
static void add(const std::string &name, int port)
{
    ports[name + " "] = port; // ROOT
}
int main()
{
    add("http", 80);
    std::printf("%d\n", ports.at("http"));
    return 0;
}
