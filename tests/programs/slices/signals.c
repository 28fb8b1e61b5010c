/* Handlers of signals that the program sends to itself come in between. */
#include "slices.h"
static u64 table[8] = {2, 7, 1, 8, 2, 8, 1, 8};
static volatile u64 seen, shared;

struct action { void (*handler)(int); u64 flags; void (*restorer)(void); u64 mask; };
void restore(void);
__asm__(".text\nrestore: mov $15,%eax\n syscall\n ud2\n");
static void on(int signal, void (*handler)(int)) {
    struct action action = {handler, 0x04000000, restore, 0};
    call6(13, signal, (long)&action, 0, 8, 0, 0);
}
static void on_signal(void (*handler)(int)) { on(10, handler); }
static void raise_signal(void) { call3(62, call3(39, 0, 0, 0), 10, 0); }

static void adds(int number) { seen = seen + table[seen & 7]; }
static void nothing(int number) { u64 idle = number; for (int i = 0; i < 4; i++) { UNKNOWN(idle); idle *= 5; } }
static void decides(int number) { if (table[seen & 7] > 4) seen = 11; else seen = 22; }
HELPER u64 look_up(u64 x) { return x & 1 ? table[x & 7] : x; }
static void calls_more(int number) { shared = look_up(seen) + look_up(seen + 1); }

/* What the handler made. */
PROGRAM made_there(u64 x) { seen = x; on_signal(adds); raise_signal(); return seen; }
/* Registers are what they were, whatever the handler did with them. */
PROGRAM kept_meanwhile(u64 x) {
    u64 a = x * 3, b = x ^ 9, c = x + table[1];
    UNKNOWN(a); UNKNOWN(b); UNKNOWN(c);
    on_signal(nothing);
    raise_signal();
    return a + b * c;
}
/* A decision in the handler is not one about what is interrupted. */
PROGRAM decided_there(u64 x) { seen = x; on_signal(decides); raise_signal(); return x & 1 ? seen : seen * 2; }
/* Again and again, in a loop that decides by itself. */
PROGRAM interrupted_loop(u64 x) {
    u64 r = 0;
    seen = x;
    on_signal(adds);
    for (u64 i = 0; i < 6; i++) { if (i & 1) raise_signal(); r += seen ^ i; }
    return r;
}
/* A handler that calls. */
PROGRAM calls_there(u64 x) { seen = x; on_signal(calls_more); raise_signal(); return shared + x; }
/* A handler that comes right behind a return, or an indirect jump: what is there faults, and the
 * handler gives rax something to point to. */
static void repairs(int number, void *info, u64 *context) {
    if (table[seen & 7] > 1) seen = seen + 1;
    context[5 + 13] = (u64)&table[3];
}
HELPER u64 *none_for_odd(u64 x) { return x & 1 ? 0 : &table[x & 7]; }
PROGRAM behind_return(u64 x) {
    u64 r = 0;
    seen = x;
    on(11, (void (*)(int))repairs);
    for (u64 i = 0; i < 6; i++) {
        u64 loaded, number = x + i;
        __asm__ volatile("call *%2\n mov (%%rax),%%rax" : "=&a"(loaded), "+D"(number) : "r"(none_for_odd)
                         : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory");
        if (loaded & 1) r += i; else r += loaded;
    }
    return r;
}
PROGRAM behind_jump(u64 x) {
    u64 r = 0;
    seen = x;
    on(11, (void (*)(int))repairs);
    for (u64 i = 0; i < 6; i++) {
        u64 loaded = (u64)none_for_odd(x + i);
        __asm__ volatile("lea 1f(%%rip),%%rcx\n test $2,%1\n jz 2f\n lea 3f(%%rip),%%rcx\n 2: jmp *%%rcx\n"
                         " 3: mov (%%rax),%%rax\n add $9,%%rax\n jmp 4f\n 1: mov (%%rax),%%rax\n 4:"
                         : "+a"(loaded) : "r"(i) : "rcx", "memory");
        r = r * 2 + loaded;
    }
    return r + seen;
}

#define LIST(P)                                                                                    \
    P(made_there) P(kept_meanwhile) P(decided_there) P(interrupted_loop) P(calls_there)   \
    P(behind_return) P(behind_jump)
RUN(LIST)
