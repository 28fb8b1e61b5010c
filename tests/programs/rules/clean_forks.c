// Children that use, free and replace what they inherited, while their parent goes on with its own:
// same addresses, other blocks. One executes another program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *texts[20];

static int work(int seed) {
    int sum = 0;
    for (int i = 0; i < 20; i++) {
        free(texts[i]);
        texts[i] = malloc(10 + (seed + i) % 7);
        sprintf(texts[i], "text %d", i);
        sum += strlen(texts[i]);
    }
    return sum;
}

int main(void) {
    for (int i = 0; i < 20; i++)
        texts[i] = strdup("a text to begin with");
    for (int child = 0; child < 3; child++)
        if (fork() == 0) {
            int sum = work(child);
            if (child == 1 && fork() == 0)
                _exit(work(9) == sum ? 0 : 1);
            if (child == 1)
                wait(NULL);
            if (child == 2)
                execl("/bin/true", "true", NULL);
            exit(sum > 0 ? 0 : 1);
        }
    int sum = work(5);
    while (wait(NULL) > 0)
        ;
    for (int i = 0; i < 20; i++)
        free(texts[i]);
    return sum > 0 ? 0 : 1;
}
