// Parent and child do the same wrong thing at the same place: one finding, not two.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    int *block = malloc(40);
    *block = 1;
#ifndef FIXED
    free(block);
#endif
    pid_t child = fork();
    int value = *block; // FINDS dangling-pointer
    if (child == 0)
        _exit(value == 2);
    wait(NULL);
    return 0;
}
