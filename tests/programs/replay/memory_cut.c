// build: -O1
// Files that become shorter while they are mapped, shared and private: what was mapped beyond the end is
// gone, for the program and for the kernel, and reads as zeros once the file is longer again.
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>

enum { PAGE = 4096, SIZE = 4 * PAGE };
static sigjmp_buf back;
static volatile unsigned char *shared, *private;

static void fault(int signal) { siglongjmp(back, signal); }

static int is_there(volatile unsigned char *address)
{
    if (sigsetjmp(back, 1)) return 0;
    return *address + 1 > 0;
}

static void look(const char *when)
{
    printf("%s:", when);
    for (int at = 0; at < SIZE; at += PAGE / 2) {
        if (is_there(shared + at)) printf(" %d/%d", shared[at], private[at]);
        else printf(" -");
    }
    int file = open("/dev/null", O_WRONLY), ends[2];
    MUST(file);
    MUST(pipe(ends));
    ssize_t written = write(ends[1], (char *)shared + 3 * PAGE, 10);
    printf(", a pipe takes %zd\n", written);
    MUST(close(file));
    MUST(close(ends[0]));
    MUST(close(ends[1]));
}

static void fill(int file)
{
    unsigned char text[SIZE];
    for (int done = 0; done < SIZE; done += 256) CHECK(getrandom(text + done, 256, 0) == 256);
    CHECK(pwrite(file, text, SIZE, 0) == SIZE);
}

int main(void)
{
    CHECK(signal(SIGBUS, fault) != SIG_ERR);
    int file = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(file);
    fill(file);
    shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    private = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(shared != MAP_FAILED && private != MAP_FAILED);
    private[2 * PAGE + 1] = 7;
    look("at first");
    MUST(ftruncate(file, PAGE + PAGE / 4));
    look("shorter");
    MUST(ftruncate(file, SIZE));
    look("longer again");
    fill(file);
    look("filled");
    MUST(truncate("mapped", 2 * PAGE + 1));
    look("by name");
    CHECK(pwrite(file, "x", 1, SIZE - 1) == 1);
    look("written behind the end");
    int again = open("mapped", O_WRONLY | O_TRUNC);
    MUST(again);
    look("emptied");
    fill(again);
    look("and filled");
    return ok();
}
