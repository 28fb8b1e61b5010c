// Asks for memory until there is none, and uses the NULL that it gets then.
#include <stdlib.h>
#include <sys/resource.h>

int main(void)
{
    struct rlimit limit = {64 << 20, 64 << 20};
    setrlimit(RLIMIT_DATA, &limit);
    for (;;) {
        char *block = malloc(1 << 20);
        *block = 1;
    }
}
