// Words of a text are counted, in a child too. BUG: the buffer is one byte too small and read beyond what was
// written, a shift is too wide.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int words(const char *text) {
#ifdef BUG
    char copy[16];
    for (int i = 0; i <= 16; i++)
        copy[i < (int)strlen(text) ? i : 16] = 'x';
#else
    char copy[64] = "";
    strncpy(copy, text, sizeof copy - 1);
#endif
    int count = 0;
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        count++;
    return count;
}

int main(int count, char **arguments) {
    (void)arguments;
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(words("one two three"));
    waitpid(child, &status, 0);
#ifdef BUG
    int wide = 1 << (31 + count);
#else
    int wide = 1 << count;
#endif
    printf("%d %d %d\n", WEXITSTATUS(status) > 0, words("four five") > 0, wide != 0);
    return 0;
}
