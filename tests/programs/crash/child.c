// As many children as the argument says crash at the same time; the parent ends well.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(int *pointer)
{
    *pointer = 1;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1, start[2];
    char byte;
    if (pipe(start))
        return 3;
    for (int i = 0; i < count; i++)
        if (fork() == 0) {
            close(start[1]);
            if (read(start[0], &byte, 1) == 0)
                child(NULL);
            _exit(0);
        }
    close(start[1]);
    for (int i = 0; i < count; i++)
        wait(NULL);
    return 0;
}
