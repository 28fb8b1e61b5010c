// build: -O1
// The ancient vsyscall page: time() at its fixed address, if the kernel offers it; a SIGSEGV there is
// an answer too, but the same one natively and under the engine.
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <time.h>
static sigjmp_buf back;
static void handler(int s) { (void)s; siglongjmp(back, 1); }
int main(void)
{
    signal(SIGSEGV, handler);
    time_t (*ancient)(time_t *) = (time_t (*)(time_t *))0xffffffffff600400;
    if (sigsetjmp(back, 1) == 0) printf("vsyscall time %s\n", labs((long)ancient(NULL) - (long)time(NULL)) <= 1 ? "agrees" : "differs");
    else puts("no vsyscall page");
    return ok();
}
