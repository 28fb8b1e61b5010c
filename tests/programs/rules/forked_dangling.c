// A child that was forked uses a block that its parent had freed before.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    int *block = malloc(40);
    *block = 1;
#ifndef FIXED
    free(block);
#endif
    if (fork() == 0)
        _exit(*block == 2); // FINDS dangling-pointer
    wait(NULL);
    return 0;
}
