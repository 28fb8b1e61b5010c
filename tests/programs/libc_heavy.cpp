// build: -O2 -std=c++17
// Much of libc and libstdc++ at once: iostreams, locales, regex, maps, sort, wide strings, getaddrinfo
// and getpwnam (which dlopen), iconv, strftime, qsort, glob, regcomp, random numbers.
#include "check.h"
#include <algorithm>
#include <clocale>
#include <ctime>
#include <glob.h>
#include <iconv.h>
#include <iostream>
#include <map>
#include <memory>
#include <netdb.h>
#include <pwd.h>
#include <random>
#include <regex>
#include <sstream>
#include <unordered_map>
struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
struct Square : Shape { double s; explicit Square(double v) : s(v) {} double area() const override { return s * s; } };
struct Disc : Shape { double r; explicit Disc(double v) : r(v) {} double area() const override { return 3 * r * r; } };
int main()
{
    std::mt19937_64 random(42);
    std::map<std::string, long> words;
    std::unordered_map<uint64_t, int> seen;
    std::vector<uint64_t> numbers;
    for (int i = 0; i < 20000; i++) {
        uint64_t n = random();
        numbers.push_back(n);
        seen[n % 1000]++;
        words["w" + std::to_string(n % 97)] += i;
    }
    std::sort(numbers.begin(), numbers.end());
    std::stable_sort(numbers.begin(), numbers.end(), [](uint64_t a, uint64_t b) { return a % 1000 < b % 1000; });
    std::cout << numbers[10000] << ' ' << words["w5"] << ' ' << seen.size() << ' ' << words.size() << '\n';
    std::regex pattern("([a-z]+)-(\\d+)");
    std::smatch match;
    std::string text = "see item-42 and thing-7";
    while (std::regex_search(text, match, pattern)) {
        std::cout << match[1] << '=' << match[2] << '\n';
        text = match.suffix();
    }
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 100; i++) {
        if (i % 2) shapes.emplace_back(new Square(i)); else shapes.emplace_back(new Disc(i));
    }
    double area = 0;
    for (auto &s : shapes) area += s->area();
    std::ostringstream out;
    out << std::hex << std::showbase << 255 << ' ' << std::scientific << area;
    std::cout << out.str() << std::endl;
    std::setlocale(LC_ALL, "C.UTF-8");
    time_t zero = 86400 * 365;
    char buffer[100];
    std::strftime(buffer, sizeof buffer, "%A %d %B %Y %H:%M:%S %Z", gmtime(&zero));
    std::cout << buffer << '\n';
    passwd *root = getpwnam("root");
    std::cout << (root ? root->pw_dir : "none") << '\n';
    iconv_t conversion = iconv_open("UTF-16LE", "LATIN1");
    CHECK(conversion != iconv_t(-1));
    char latin[] = "caf\xe9", wide[20], *in = latin, *to = wide;
    size_t left = 4, room = 20;
    CHECK(iconv(conversion, &in, &left, &to, &room) == 0 && room == 12 && (unsigned char)wide[6] == 0xe9);
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICHOST;
    CHECK(getaddrinfo("127.0.0.1", "80", &hints, &found) == 0);
    freeaddrinfo(found);
    glob_t files;
    CHECK(glob("/etc/pass*", 0, nullptr, &files) == 0);
    std::cout << files.gl_pathv[0] << '\n';
    std::wcout << L"";
    return ok();
}
