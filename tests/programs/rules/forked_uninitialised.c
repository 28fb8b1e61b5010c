// A child decides by what its parent never wrote; the grandchild knows it too.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    int *limits = malloc(4 * sizeof(int));
    limits[0] = 1;
#ifdef FIXED
    limits[2] = 0;
#endif
    if (fork() == 0) {
        if (fork() == 0) {
            if (limits[2] > 5) // FINDS uninitialised-read
                limits[0] = 2;
            _exit(0);
        }
        wait(NULL);
        _exit(0);
    }
    wait(NULL);
    free(limits);
    return 0;
}
