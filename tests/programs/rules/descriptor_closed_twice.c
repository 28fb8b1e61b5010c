// rules: descriptors
// Closes a descriptor twice.
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    int file = open("/dev/null", O_RDONLY);
    close(file);
#ifndef FIXED
    close(file); // FINDS double-close
#endif
    return 0;
}
