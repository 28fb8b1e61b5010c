// Other programs are started on stacks of a few pages; what lies below those stays what it was.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 64 << 12 };

int main(int count, char **words) {
    if (count > 1)
        return 0;
    // Most likely the stack is mapped right above this.
    char *below = mmap(0, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(below, 1, PAGES);
    munmap(below + PAGES / 2, PAGES / 2);
    char *again[] = {words[0], "again", 0}, *nothing[] = {0};
    pid_t child;
    int status, sum = 0;
    for (int round = 0; round < 3; round++) {
        if (posix_spawn(&child, words[0], 0, 0, again, nothing))
            return 1;
        waitpid(child, &status, 0);
        for (int at = 0; at < PAGES / 2; at += 512)
            if (below[at] == 1)
                sum++;
    }
    printf("%d\n", sum);
    return 0;
}
