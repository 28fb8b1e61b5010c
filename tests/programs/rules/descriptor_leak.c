// rules: descriptors
// A descriptor is still open at the end.
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    int file = open("/dev/null", O_RDONLY); // LOSES descriptor-leak
#ifdef FIXED
    close(file);
#endif
    return file > 100;
}
