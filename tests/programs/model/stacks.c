/* Says of itself what a model of the process is to find out: at every call of `mark` where the return
 * addresses of all active calls stand, from frame pointers, and at the end which blocks are live. Calls
 * are nested and recursive, left by longjmp, made in signal handlers on this stack and another, and in a
 * thread. Build with -O0 -fno-omit-frame-pointer. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread uintptr_t outermost;
static jmp_buf back;

/* One line: where return addresses stand, innermost first. */
__attribute__((noinline)) void mark(void) {
    uintptr_t *frame = __builtin_frame_address(0);
    printf("mark");
    for (;; frame = (uintptr_t *)frame[0]) {
        printf(" %lx", (unsigned long)(frame + 1));
        if ((uintptr_t)frame == outermost)
            break;
    }
    printf("\n");
}

__attribute__((noinline)) void nested(int depth) {
    volatile char room[40];
    room[0] = depth;
    if (depth > 0)
        nested(depth - 1);
    else
        mark();
    room[1] = room[0];
}

__attribute__((noinline)) void jumps(int depth) {
    volatile char room[200];
    room[0] = depth;
    if (depth == 0)
        longjmp(back, 1);
    jumps(depth - 1);
    room[1] = room[0];
}

/* Sends a signal to this process, without calls of the library's, which have no frame pointers. */
static void send(int signal) {
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"((long)SYS_kill), "D"((long)getpid()), "S"((long)signal)
                     : "rcx", "r11", "memory");
}

static void handler(int signal) {
    (void)signal;
    nested(1);
}

__attribute__((noinline)) void signals(int flags) {
    static char room[1 << 16];
    stack_t other = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&other, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    send(SIGUSR1);
    mark();
}

static void *thread(void *unused) {
    outermost = (uintptr_t)__builtin_frame_address(0);
    nested(3);
    return unused;
}

int main(void) {
    outermost = (uintptr_t)__builtin_frame_address(0);
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("functions %p %p %p %p\n", (void *)mark, (void *)malloc, (void *)free, (void *)realloc);
    mark();
    nested(5);
    if (setjmp(back) == 0)
        jumps(4);
    nested(2);
    mark();
    /* Jumped out of, and then deeper than what was left. */
    if (setjmp(back) == 0)
        jumps(1);
    nested(9);
    signals(0);
    signals(SA_ONSTACK);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    mark();
    char *kept = malloc(100), *grown = malloc(50), *gone = malloc(3000);
    grown = realloc(grown, 5000);
    printf("block %lx 100\nblock %lx 5000\ngone %lx 3000\n", (long)kept, (long)grown, (long)gone);
    free(gone);
    return 0;
}
