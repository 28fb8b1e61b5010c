/* Values that go from thread to thread, and from the kernel. */
#include "slices.h"
/* Each thread has a stack of its own: it may still be on it when others have gone on. */
static long stacks[16][2048];
static int threads;
static volatile u64 cell, ready, other[4];
static volatile int done;
static u64 given;

static inline void wait_while(volatile int *word, int value) { call6(202, (long)word, 0, value, 0, 0, 0); }
__asm__("thread: xor %ebp,%ebp\n pop %rdi\n pop %rax\n call *%rax\n"
        " mov $60,%eax\n xor %edi,%edi\n syscall\n");
/* A thread that runs work(x). */
HELPER void spawn(void (*work)(u64), u64 x) {
    extern char thread[];
    long *top = &stacks[threads++][2000];
    *--top = (long)work;
    *--top = x;
    *--top = (long)thread;
    long r;
    __asm__ volatile("syscall\n test %%eax,%%eax\n jnz 1f\n ret\n 1:"
                     : "=a"(r) : "a"(56), "D"(0x50f00), "S"(top), "d"(0) : "rcx", "r11", "memory");
}
HELPER void finish(void) { __sync_fetch_and_add(&done, 1); call3(202, (long)&done, 1, 2); }
HELPER void join(int count) { for (int n; (n = done) < count;) wait_while(&done, n); done = 0; }

HELPER void make(u64 x) { cell = x * 3; finish(); }
/* Made in another thread. */
PROGRAM other_thread(u64 x) { spawn(make, x); join(1); return cell + 1; }
HELPER void relay(u64 x) { while (!ready) call3(24, 0, 0, 0); cell = given + x; finish(); }
/* Handed over when a flag is set. */
PROGRAM handed_over(u64 x) { ready = 0; spawn(relay, 2); given = x * 5; ready = 1; join(1); return cell; }
HELPER void add(u64 x) { for (int i = 0; i < 20; i++) __sync_fetch_and_add(&cell, x); finish(); }
/* Two threads add to one word. */
PROGRAM added(u64 x) { cell = 0; spawn(add, x); spawn(add, 1); join(2); return cell; }
HELPER void racy(u64 x) { for (int i = 0; i < 20; i++) cell = cell + x; finish(); }
/* A race: whose store was the last is what the order of the run says. */
PROGRAM race(u64 x) { cell = 0; spawn(racy, x); spawn(racy, 1); join(2); return cell; }
HELPER void locked(u64 x) {
    for (int i = 0; i < 5; i++) {
        while (!__sync_bool_compare_and_swap(&ready, 0, 1)) call3(24, 0, 0, 0);
        cell = cell * 3 + x;
        __sync_lock_release(&ready);
    }
    finish();
}
/* The same under a lock. */
PROGRAM under_lock(u64 x) { cell = ready = 0; spawn(locked, x); spawn(locked, 1); join(2); return cell; }
HELPER void fill(u64 x) { for (int i = 0; i < 4; i++) other[i] = x + i; finish(); }
/* Which of two threads wrote an element. */
PROGRAM two_writers(u64 x) { spawn(fill, x); spawn(fill, x * 100); join(2); return other[2]; }
/* Read from the kernel: the slice ends in an input. */
PROGRAM piped(u64 x) {
    int ends[2];
    u64 sent = x * 9, got = 0;
    call3(22, (long)ends, 0, 0);
    call3(1, ends[1], (long)&sent, 8);
    call3(0, ends[0], (long)&got, 8);
    return got + 1;
}
/* The answer of a call is a value. */
PROGRAM answer(u64 x) { u8 buffer[16]; return call3(318, (long)buffer, x & 7, 0) + x; }
#define LIST(P) P(other_thread) P(handed_over) P(added) P(race) P(under_lock) P(two_writers) P(piped) P(answer)
RUN(LIST)
