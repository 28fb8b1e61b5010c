// build: -O1 -lm
// build: -O1 -static -lm
// build: -O1 -static-pie -fPIE -lm
// build: -O1 -no-pie -lm
// build: -O0 -fno-plt -Wl,-z,now -lm
// build: -O2 -Wl,-z,lazy -Wl,--hash-style=sysv -lm
// build: -O2 -fcf-protection=full -Wl,-z,separate-code -lm
// Every way to link a C program: the loader must place each as the kernel would.
#include "check.h"
#include <math.h>
static int constructed;
__attribute__((constructor)) static void before(void) { constructed = 1; }
__attribute__((destructor)) static void after(void) { (void)!write(1, "bye\n", 4); }
int main(int argc, char **argv)
{
    CHECK(constructed && argc == 1 && argv[1] == NULL);
    volatile double two = 2;
    printf("hello %.15f %zu\n", sqrt(two), strlen("strlen is an ifunc"));
    return ok();
}
