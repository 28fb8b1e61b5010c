// Parent and child free what both have: that is one free each. The child then frees it again.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    char *block = malloc(2000);
    if (fork() == 0) {
        free(block);
#ifndef FIXED
        free(block); // FINDS double-free
#endif
        _exit(0);
    }
    wait(NULL);
    free(block);
    return 0;
}
