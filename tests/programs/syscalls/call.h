// What the programs of this folder share. Each makes every system call of its family that writes into
// the caller's memory: into room that is filled with a pattern, so that every byte written shows, and
// once more into room that ends in the middle of what is written, so that the kernel faults there.
// What a call answers does not matter here: `testkit::syscallwrites` watches what it wrote.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

// Raw calls, as libc's wrappers have ideas of their own.
#define call(number, ...) syscall_named(#number, syscall(number, ##__VA_ARGS__))

static long syscall_named(const char *name, long answer) {
    if (answer == -1 && getenv("SHOW_ERRORS")) fprintf(stderr, "%s: %s\n", name, strerror(errno));
    return answer;
}

// Fresh room, filled with a pattern, with a gap behind it.
static void *room(size_t size) {
    static unsigned char *next, *end;
    size_t taken = (size + 63 + 128) & ~(size_t)63;
    if (!next || next + taken > end) {
        size_t length = taken > (1 << 16) ? taken : 1 << 16;
        next = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + length;
    }
    void *given = next;
    next += taken;
    memset(given, 0xa5, taken);
    return given;
}

// Room for only `size` bytes: behind it there is no memory.
__attribute__((unused)) static void *edge(size_t size) {
    unsigned char *page =
        mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    memset(page, 0xa5, 4096);
    return page + 4096 - size;
}

// A number in memory, for lengths that are asked and answered.
__attribute__((unused)) static unsigned *number(unsigned value) {
    unsigned *at = room(sizeof *at);
    *at = value;
    return at;
}

static void nothing(int signal) {}

// A signal comes that ends the next wait.
__attribute__((unused)) static void interrupt_soon(void) {
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = nothing}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 20000}}, NULL);
}

#ifndef SYS_cachestat
#define SYS_cachestat 451
#define SYS_statmount 457
#define SYS_listmount 458
#define SYS_lsm_get_self_attr 459
#define SYS_lsm_list_modules 461
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_file_getattr 468
#endif
