// A child writes behind a block that its parent made, through a copy of the pointer that was made
// before it was forked.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct names {
    char *text;
    int count;
};

int main(void) {
    struct names names = {malloc(10), 10};
#ifndef FIXED
    names.count++;
#endif
    if (fork() == 0) {
        for (int i = 0; i < names.count; i++)
            names.text[i] = 'x'; // FINDS heap-overflow
        _exit(0);
    }
    wait(NULL);
    free(names.text);
    return 0;
}
