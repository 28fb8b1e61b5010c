// Children that wait in system calls, with memory that their parent writes to, are killed there: what was
// recorded of them ends in the middle of a call.
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 12 };

int main(void) {
    volatile char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int waiting[2];
    if (pipe(waiting))
        return 1;
    for (int number = 0; number < CHILDREN; number++) {
        pid_t child = fork();
        if (child == 0) {
            char byte;
            shared[0] = 1;
            for (;;)
                if (read(waiting[0], &byte, 1) == 1 && shared[1] == 99)
                    _exit(1);
        }
        while (number % 2 && !shared[0])
            ;
        shared[0] = 0;
        shared[1] = number;
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        printf("%d\n", WTERMSIG(status));
    }
    return 0;
}
