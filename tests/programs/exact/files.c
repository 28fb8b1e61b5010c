/* build: -O1 -static
 * System calls with buffers: files in memory, pipes, readv and writev, stat, getcwd. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

int main(void) {
    char one[32], other[32];
    int ends[2], file = memfd_create("file", 0);
    struct stat about;
    pipe(ends);
    for (int i = 0; i < 10; i++) {
        struct iovec parts[2] = {{"some text", 9}, {"and more", (size_t)i % 8}};
        writev(file, parts, 2);
        write(ends[1], "through a pipe", 14);
        read(ends[0], one, 14);
    }
    fstat(file, &about);
    pread(file, other, 20, 5);
    return (int)(about.st_size + one[3] + other[7]) & 127;
}
