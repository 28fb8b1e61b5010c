// build: -O1 -pthread
// Memory that changes though no instruction writes to it: files that are mapped, shared and private,
// and written through a descriptor; a file that grows under its mapping; the process's own memory as a
// file; a buffer that a read fills while another thread looks at it.
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>

static volatile unsigned char incoming[64];
static int ends[2];
static long looked;

static void *look(void *unused)
{
    long count = 0;
    unsigned char text[64];
    CHECK(getrandom(text, sizeof text, 0) == sizeof text);
    text[63] = 1;
    for (int i = 0; i < 20000; i++) count += incoming[i % 63] == 0;
    MUST(write(ends[1], text, sizeof text));
    while (!incoming[63]) count++;
    looked = count;
    return unused;
}

int main(void)
{
    unsigned random;
    CHECK(getrandom(&random, sizeof random, 0) == sizeof random);
    int file = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(file);
    MUST(ftruncate(file, 4096));
    volatile unsigned *shared = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    volatile unsigned *private = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(shared != MAP_FAILED && private != MAP_FAILED);
    CHECK(pwrite(file, &random, sizeof random, 100) == sizeof random);
    printf("shared %u private %u\n", shared[25], private[25]);
    CHECK(shared[25] == random && private[25] == random);
    MUST(lseek(file, 8192, SEEK_SET));
    CHECK(write(file, &random, sizeof random) == sizeof random);
    CHECK(shared[2048] == random && shared[1500] == 0);
    MUST(ftruncate(file, 16384));
    shared[3000] = shared[2048] + 1;

    int memory = open("/proc/self/mem", O_RDWR);
    MUST(memory);
    unsigned own = 1;
    CHECK(pwrite(memory, &random, sizeof random, (off_t)(uintptr_t)&own) == sizeof random);
    CHECK(own == random);

    pthread_t other;
    MUST(pipe(ends));
    CHECK(pthread_create(&other, NULL, look, NULL) == 0);
    CHECK(read(ends[0], (void *)incoming, sizeof incoming) == sizeof incoming);
    CHECK(pthread_join(other, NULL) == 0);
    unsigned sum = 0;
    for (int i = 0; i < 64; i++) sum = sum * 31 + incoming[i];
    printf("own %u looked %ld sum %u\n", own, looked, sum);
    MUST(unlink("mapped"));
    return ok();
}
