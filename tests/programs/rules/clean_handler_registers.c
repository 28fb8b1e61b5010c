// build: -O1
// A signal comes while registers hold a pointer; its handler uses them for pointers to something else, and
// another one changes what one of them will hold.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static char *small;
static char *large;

static void uses(int signal) {
    asm volatile("mov %0, %%r8\n\tmov %0, %%r9\n\tmov %0, %%r10\n\tmovb $1, (%%r8)" ::"r"(small)
                 : "r8", "r9", "r10", "memory");
}

static void changes(int signal, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    interrupted->uc_mcontext.gregs[REG_R8] = (greg_t)large;
}

// Sends itself a signal with a pointer in r8, and then writes through r8.
static void interrupted(int signal, char *pointer) {
    asm volatile("mov %0, %%r8\n\t"
                 "mov $39, %%eax\n\tsyscall\n\t"
                 "mov %%eax, %%edi\n\tmov %1, %%esi\n\tmov $62, %%eax\n\tsyscall\n\t"
                 "movb $2, 40(%%r8)" ::"r"(pointer), "r"(signal)
                 : "rax", "rcx", "rdi", "rsi", "r8", "r11", "memory");
}

int main(void) {
    small = malloc(16);
    large = malloc(64);
    signal(SIGUSR1, uses);
    struct sigaction action = {.sa_sigaction = changes, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR2, &action, NULL);
    interrupted(SIGUSR1, large);
    interrupted(SIGUSR2, small);
    printf("%d\n", large[40]);
    free(large);
    free(small);
    return 0;
}
