// build: -O1
// Mapped files: private, shared but only read, grown, replaced and removed after mapping; what the
// memory holds must not depend on the file still being there.
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

static unsigned long long sum(const unsigned char *bytes, size_t count)
{
    unsigned long long value = 0;
    for (size_t i = 0; i < count; i++) value = value * 31 + bytes[i];
    return value;
}

int main(void)
{
    static unsigned char noise[20000];
    for (size_t i = 0; i < sizeof noise; i += 200) CHECK(getrandom(noise + i, 200, 0) == 200);
    int file = open("mapped.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(file);
    CHECK(write(file, noise, sizeof noise) == sizeof noise);
    unsigned char *private = mmap(NULL, sizeof noise, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    unsigned char *shared = mmap(NULL, 8192, PROT_READ, MAP_SHARED, file, 4096);
    CHECK(private != MAP_FAILED && shared != MAP_FAILED);
    printf("private %llx shared %llx\n", sum(private, sizeof noise), sum(shared, 8192));
    memset(private + 5000, 7, 100);
    MUST(unlink("mapped.tmp"));
    close(file);
    printf("after %llx %llx\n", sum(private, sizeof noise), sum(shared, 8192));
    int self = open("/proc/self/exe", O_RDONLY);
    MUST(self);
    unsigned char *image = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, self, 0);
    CHECK(image != MAP_FAILED && image[1] == 'E');
    printf("image %llx at %p\n", sum(image, 4096), (void *)image);
    MUST(munmap(shared, 4096));
    unsigned char *moved = mremap(private, 20480, 1 << 20, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && moved[5050] == 7);
    MUST(madvise(moved, 4096, MADV_DONTNEED));
    printf("moved %llx\n", sum(moved, sizeof noise));
    return ok();
}
