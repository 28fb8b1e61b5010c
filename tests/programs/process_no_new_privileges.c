// A process of root's with fewer capabilities and `no_new_privs`: each execve would give them back, and the kernel
// takes them again, and forgets where the stack is to be. Run by others than root it only executes itself.
#include "check.h"
#include <alloca.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 3) {
        char *large = alloca(1 << 20);
        memset(large, count, 1 << 20);
        CHECK(large[77] == count && getenv("HOME"));
        return ok();
    }
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    MUST(syscall(SYS_capget, &head, data));
    data[0].permitted &= 0x0f0f0f0f;
    data[0].effective &= 0x0f0f0f0f;
    data[0].inheritable = 0;
    MUST(syscall(SYS_capset, &head, data));
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    char *more[] = {"again", "x", count > 1 ? "x" : NULL, count > 2 ? "x" : NULL, NULL};
    execv("/proc/self/exe", more);
    return 1;
}
