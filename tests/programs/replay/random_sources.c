// build: -O1
// Every source of randomness: getrandom in all its forms, /dev/urandom, /dev/random, AT_RANDOM, the
// kernel's uuid.
#include "check.h"
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/random.h>

static void show(const char *name, const unsigned char *bytes, size_t count)
{
    printf("%-12s", name);
    for (size_t i = 0; i < count; i++) printf("%02x", bytes[i]);
    printf("\n");
}

static void show_file(const char *path, size_t count)
{
    unsigned char bytes[64] = {0};
    int descriptor = open(path, O_RDONLY);
    MUST(descriptor);
    ssize_t got = read(descriptor, bytes, count);
    CHECK(got == (ssize_t)count);
    close(descriptor);
    show(path, bytes, count);
}

int main(void)
{
    unsigned char bytes[300];
    CHECK(getrandom(bytes, 16, 0) == 16);
    show("getrandom", bytes, 16);
    CHECK(getrandom(bytes, 300, GRND_NONBLOCK) == 300);
    show("nonblock", bytes + 280, 20);
    CHECK(getentropy(bytes, 32) == 0);
    show("getentropy", bytes, 32);
    show("AT_RANDOM", (unsigned char *)getauxval(AT_RANDOM), 16);
    show_file("/dev/urandom", 24);
    show_file("/dev/random", 8);
    show_file("/proc/sys/kernel/random/uuid", 36);
    srand((unsigned)getpid());
    printf("rand %d\n", rand());
    return ok();
}
