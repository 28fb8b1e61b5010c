// build: -O1
// A file that one process has mapped to read, and another changes: by a descriptor, by a mapping of its own, and
// by cutting it short and making it longer again. The reader shares other memory with the writer, so that they take turns.
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SIZE (40 * 4096)

static volatile int *turn;
static const char *path = "memory_read_file.data";

static void wait_for(int number)
{
    while (*turn != number) usleep(200);
}

static unsigned sum(const volatile unsigned char *bytes)
{
    unsigned sum = 0;
    for (int i = 0; i < SIZE; i += 64) sum = sum * 31 + bytes[i];
    return sum;
}

static void writer(void)
{
    int file = open(path, O_RDWR);
    CHECK(file >= 0);
    for (int round = 0; round < 3; round++) {
        wait_for(4 * round + 1);
        CHECK(pwrite(file, "descriptor", 10, 4096 * round) == 10);
        *turn = 4 * round + 2;
        wait_for(4 * round + 3);
        char *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        CHECK(bytes != MAP_FAILED);
        for (int i = 0; i < 3; i++) memcpy(bytes + 8192 * (round + i), "mapping", 7);
        if (round == 2) {
            CHECK(ftruncate(file, SIZE / 2) == 0);
            CHECK(ftruncate(file, SIZE) == 0);
        }
        *turn = 4 * round + 4;
    }
    _exit(0);
}

int main(void)
{
    unsigned char text[SIZE];
    for (int i = 0; i < SIZE; i++) text[i] = (unsigned char)(i * 7 + i / 4096);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, text, SIZE) == SIZE && close(file) == 0);
    turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(turn != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) writer();

    usleep(50000);
    file = open(path, O_RDONLY);
    const unsigned char *bytes = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
    CHECK(file >= 0 && bytes != MAP_FAILED);
    unsigned before = sum(bytes);
    printf("%u\n", before);
    for (int round = 0; round < 3; round++) {
        *turn = 4 * round + 1;
        wait_for(4 * round + 2);
        CHECK(memcmp(bytes + 4096 * round, "descriptor", 10) == 0);
        printf("%u\n", sum(bytes));
        *turn = 4 * round + 3;
        wait_for(4 * round + 4);
        CHECK(round == 2 || memcmp(bytes + 8192 * round, "mapping", 7) == 0);
        printf("%u\n", sum(bytes));
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(unlink(path) == 0);
    puts("ok");
    return 0;
}
