// build: -O1
// The first process ends at once; one that it leaves behind goes on for a while, and has children of its
// own when nobody waits for the first any more.
#include "check.h"
#include <sys/random.h>
#include <sys/wait.h>

static void say(int number)
{
    unsigned value;
    MUST(getrandom(&value, sizeof value, 0));
    char line[40];
    int length = snprintf(line, sizeof line, "%d says %u\n", number, value);
    MUST(write(1, line, (size_t)length));
}

int main(void)
{
    if (fork() != 0) {
        puts("ok");
        return 0;
    }
    for (int number = 1; number <= 5; number++) {
        usleep(30000);
        if (fork() == 0) {
            say(number);
            return 0;
        }
        MUST(wait(NULL));
    }
    say(0);
    return 0;
}
