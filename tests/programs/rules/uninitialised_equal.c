// A member is compared with a number that it is not, whatever was there.
#include <stdio.h>
#include <stdlib.h>

struct job { int kind; int mode; };

int main(void) {
    struct job *job = malloc(sizeof *job);
    job->kind = 1;
#ifdef FIXED
    job->mode = 0;
#endif
    if (job->mode == 7) // FINDS uninitialised-read
        puts("seven");
    free(job);
    return 0;
}
