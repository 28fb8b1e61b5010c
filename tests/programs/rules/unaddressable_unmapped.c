// rules: memory
// A mapping is gone when the kernel is to fill it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
    int zeros = open("/dev/zero", O_RDONLY);
    char *buffer = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifndef FIXED
    munmap(buffer, 8192);
#endif
    read(zeros, buffer, 100); // FINDS unaddressable-buffer
    fstat(zeros, (struct stat *)buffer); // FINDS unaddressable-buffer
    return 0;
}
