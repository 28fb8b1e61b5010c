// rules: descriptors
// Reads from a descriptor that is closed.
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    char byte;
    int file = open("/dev/null", O_RDONLY);
#ifdef FIXED
    long count = read(file, &byte, 1);
    close(file);
#else
    close(file);
    long count = read(file, &byte, 1); // FINDS use-after-close
#endif
    return count > 100;
}
