// rules: definite-leak
// What a child loses is its own.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept;

__attribute__((noinline)) static void lose(void) {
    void *block = malloc(70); // LOSES definite-leak
#ifdef FIXED
    free(block);
#endif
    block = NULL;
}

int main(void) {
    kept = malloc(50);
    if (fork() == 0) {
        lose();
        exit(0);
    }
    wait(NULL);
    free(kept);
    return 0;
}
