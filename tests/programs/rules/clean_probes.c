// The kernel is asked on purpose whether memory is there, as unwinders and collectors do; large arrays on the stack
// are handed to it before anything of them was touched.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_there(int pipe, const void *at) {
    return write(pipe, at, 1) == 1;
}

__attribute__((noinline)) static long fills(int zeros, long most) {
    char large[600000];
    long got = read(zeros, large, most);
    return got + large[0];
}

int main(void) {
    int ends[2], zeros = open("/dev/zero", O_RDONLY), here = 1, found = 0;
    char *gone = mmap(0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 8192);
    pipe(ends);
    found += is_there(ends[1], &here) + is_there(ends[1], (void *)0x123456789000) + is_there(ends[1], gone);
    sigset_t *set = (sigset_t *)0x123456789000;
    found += syscall(SYS_rt_sigprocmask, ~0, set, 0L, 8L) == -1 && errno == EFAULT;
    found += read(zeros, (void *)0x123456789000, 64) == -1 && errno == EFAULT;
    return found == 3 && fills(zeros, 10) == 10 ? 0 : 1;
}
