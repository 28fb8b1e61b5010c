// Bytes that nothing wrote go out.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    char *p = malloc(16);
#ifdef FIXED
    memset(p, ' ', 16);
#endif
    memcpy(p, "short", 5);
    ssize_t sent = write(1, p, 16); // FINDS uninitialised-read
    free(p);
    return sent != 16;
}
