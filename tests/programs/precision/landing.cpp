// An exception that goes through two functions: what the handler does was decided by who threw it.
// That is only known if the frame is found in which the exception lands.
// build: g++ -g -O1
// ask: --at landing.cpp:35 --value result --kind full

static volatile int limit = 5, result = 1;

struct Guard {
    const char *what;
    __attribute__((noipa)) ~Guard() { asm volatile("" : : "r"(what)); }
};

__attribute__((noipa)) static int count(int number) {
    int sum = 0;
    for (int i = 0; i < number; i++)
        sum += i; /* decides whether it is thrown */
    return sum;
}

__attribute__((noipa)) static int parse(int number) {
    if (count(number) > limit)
        throw number;
    return number;
}

__attribute__((noipa)) static int middle(int number) {
    Guard guard{"middle"};
    return parse(number) + 1;
}

int main() {
    for (int i = 0; i < 6; i++) {
        try { limit = middle(i) & 4; } catch (int) { result = 100; }
    }
    return result == 100 ? 0 : 1;
}
