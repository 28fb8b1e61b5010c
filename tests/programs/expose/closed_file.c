// depth: 2, a race on the order of calls
// A worker looks whether it is to stop, then writes to a file that main has closed in between.
#include "expose.h"
#include <fcntl.h>
#include <stdatomic.h>
static _Atomic int stop;
static int file, wrong;
static void *log_it(void *unused)
{
    if (!stop)
        wrong = write(file, "x", 1) != 1;
    return unused;
}
static void *close_it(void *unused)
{
    work(2 * LONG);
    stop = 1;
    close(file);
    return unused;
}
int main(void)
{
    file = open("/dev/null", O_WRONLY);
    TOGETHER(log_it, close_it);
    return verdict(wrong);
}
