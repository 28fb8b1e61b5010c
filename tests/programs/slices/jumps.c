/* Jumps out of calls: behind one, what runs is the frame that the stack pointer is in, and the jump
 * has decided about what the call that it left would have decided. */
#include "slices.h"
static u64 table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

struct buffer { u64 words[8]; };
int save(struct buffer *) __attribute__((returns_twice));
void jump(struct buffer *, int) __attribute__((noreturn));
void unwind(struct buffer *, int) __attribute__((noreturn));
void context(struct buffer *, int) __attribute__((noreturn));
/* As libc does it; as the last step of an exception; as setcontext. */
__asm__(".text\n"
        "save: mov %rbx,(%rdi)\n mov %rbp,8(%rdi)\n mov %r12,16(%rdi)\n mov %r13,24(%rdi)\n"
        " mov %r14,32(%rdi)\n mov %r15,40(%rdi)\n lea 8(%rsp),%rdx\n mov %rdx,48(%rdi)\n"
        " mov (%rsp),%rdx\n mov %rdx,56(%rdi)\n xor %eax,%eax\n ret\n"
        "load: mov (%rdi),%rbx\n mov 8(%rdi),%rbp\n mov 16(%rdi),%r12\n mov 24(%rdi),%r13\n"
        " mov 32(%rdi),%r14\n mov 40(%rdi),%r15\n mov %esi,%eax\n mov 56(%rdi),%rdx\n"
        " mov 48(%rdi),%r8\n ret\n"
        "jump: call load\n mov %r8,%rsp\n jmp *%rdx\n"
        "unwind: call load\n lea -8(%r8),%rcx\n mov %rdx,(%rcx)\n mov %rcx,%rsp\n pop %rcx\n jmp *%rcx\n"
        "context: call load\n mov %r8,%rsp\n push %rdx\n xor %edx,%edx\n ret\n");

struct action { void (*handler)(int); u64 flags; void (*restorer)(void); u64 mask; };
void restore(void);
__asm__(".text\nrestore: mov $15,%eax\n syscall\n ud2\n");
/* Signals stay open while they are handled, as they are after siglongjmp. */
static void on_signal(int signal, void (*handler)(int), u64 flags) {
    struct action action = {handler, 0x44000000 | flags, restore, 0};
    call6(13, signal, (long)&action, 0, 8, 0, 0);
}
HELPER void raise_signal(void) { call3(62, call3(39, 0, 0, 0), 10, 0); }

static struct buffer outer, inner, buffers[8];
static volatile u64 seen;

HELPER u64 third(u64 x) { if (table[x & 7] > 2) jump(&outer, x | 1); return x; }
HELPER u64 second(u64 x) { u64 y = x * 3; UNKNOWN(y); return third(y) + 1; }
HELPER u64 first(u64 x) { return second(x + 1) * 2; }

/* Over several frames. */
PROGRAM over_frames(u64 x) {
    int came = save(&outer);
    if (came) return came * 5 + x;
    return first(x) + 1;
}
/* A call that returns sometimes, and is jumped out of at other times. */
PROGRAM sometimes(u64 x) {
    volatile u64 i = 0, r = 0;
    if (save(&outer)) r += 100;
    while (i < 7) { i = i + 1; r += first(x + i); }
    return r;
}
/* What comes behind in any case is not decided by the jump. */
PROGRAM in_any_case(u64 x) {
    u64 after = x + table[2];
    UNKNOWN(after);
    volatile u64 r = 0;
    if (save(&outer) == 0) r = first(x); else r = 7;
    u64 s = after;
    for (u64 i = 0; i < 3; i++) s += table[i];
    seen = r;
    return s;
}
/* One of several activations, not the innermost. */
HELPER u64 deep(u64 n, u64 to) {
    if (save(&buffers[n])) return n * 1000 + table[n];
    u64 r = n == 0 ? (jump(&buffers[to], 1), 0) : deep(n - 1, to);
    return r + (n & 1 ? table[n] : 1);
}
PROGRAM activation(u64 x) { return deep(6, 1) + deep(5, 3) + deep(4, 4) + (x & 1); }
/* Behind the jump, no call for a long time. */
HELPER u64 quiet(u64 n, u64 to) {
    volatile u64 r = n;
    if (save(&buffers[n])) {
        for (u64 i = 0; i < 400; i++) r = r + (i & 4 ? n : table[i & 7]);
        return r;
    }
    if (n == 0) jump(&buffers[to], 1);
    return quiet(n - 1, to) + r;
}
PROGRAM no_calls(u64 x) { return quiet(5, 2) + x; }
/* Saved anew in every round. */
PROGRAM every_round(u64 x) {
    volatile u64 r = 0;
    for (volatile u64 i = 0; i < 6; i = i + 1) {
        int came = save(&outer);
        if (came == 0) r += first(x + i);
        else if (came & 4) r += i * 10;
    }
    return r;
}
/* The same place again and again, until it is enough. */
PROGRAM retried(u64 x) {
    volatile u64 tries = 0, r = x;
    int came = save(&outer);
    tries = tries + 1;
    if (tries < 5) { r = r * 3 + came; if (table[tries] & 1) jump(&outer, tries); first(r | 8); }
    return r + tries;
}
/* From the frame itself. */
PROGRAM own_frame(u64 x) {
    volatile u64 r = x;
    if (save(&outer) == 0) { r = r + 4; if (r > 3) jump(&outer, 2); r = 9; }
    return r;
}
/* One inside another, handed on. */
HELPER u64 guarded(u64 x) {
    int came = save(&inner);
    if (came) { if (came > 2) jump(&outer, came + 1); return 50; }
    if (table[x & 7] > 4) jump(&inner, table[x & 7] & 3 ? 7 : 2);
    return x;
}
PROGRAM handed_on(u64 x) {
    volatile u64 r = 0, i = 0;
    int came = save(&outer);
    if (came) r += came * 10;
    while (i < 8) { i = i + 1; r += guarded(i); }
    return r + x;
}
/* Registers that the callees have changed are what they were. */
HELPER u64 busy(u64 x) {
    u64 a = x + 1, b = x * 2, c = x ^ 3, d = x - 4, e = x | 5;
    UNKNOWN(a); UNKNOWN(b); UNKNOWN(c); UNKNOWN(d); UNKNOWN(e);
    u64 r = second(a + b) + second(c + d);
    return r + a + b + c + d + e;
}
PROGRAM registers(u64 x) {
    u64 keep = x * 11, other = x ^ 77;
    UNKNOWN(keep); UNKNOWN(other);
    int came = save(&outer);
    return came ? keep + came : other + busy(x);
}
/* The compiler's own. */
static void *label[5];
HELPER void far(u64 x) { if (x > 2) __builtin_longjmp(label, 1); far(x + 1); seen = x; }
PROGRAM builtin(u64 x) {
    volatile u64 r = x;
    if (__builtin_setjmp(label) == 0) { r = r + 2; far(0); r = 1; } else { r = r * 3; }
    return r;
}
/* As exceptions do it, and as contexts. */
HELPER u64 throws(u64 x, void (*how)(struct buffer *, int)) { if (x & 1) how(&outer, x); return x + table[x & 7]; }
HELPER u64 through(u64 x, void (*how)(struct buffer *, int)) { u64 y = throws(x, how); return y * y; }
PROGRAM unwound(u64 x) {
    volatile u64 r = 0, i = 0;
    int came = save(&outer);
    if (came) r += came;
    while (i < 6) { i = i + 1; r += through(i, unwind); }
    return r + x;
}
PROGRAM contexts(u64 x) {
    volatile u64 r = 0, i = 0;
    int came = save(&outer);
    if (came) r += came;
    while (i < 6) { i = i + 1; r += through(i, context); }
    return r + x;
}
/* Out of a handler, over what it interrupted. */
static void jumps(int signal) { if (seen & 1) jump(&outer, seen | 1); seen = seen + 1; }
HELPER u64 interrupted(u64 x) { seen = x; raise_signal(); return seen + table[x & 7]; }
PROGRAM out_of_handler(u64 x) {
    volatile u64 r = 0, i = 0;
    on_signal(10, jumps, 0);
    int came = save(&outer);
    if (came) r += came + x;
    while (i < 5) { i = i + 1; r += interrupted(i); }
    return r;
}
/* On a stack of its own. */
static u64 signal_stack[1024];
PROGRAM other_stack(u64 x) {
    struct { void *base; int flags; u64 size; } stack = {signal_stack, 0, sizeof signal_stack}, none = {0, 2, 0};
    call3(131, (long)&stack, 0, 0);
    volatile u64 r = 0, i = 0;
    on_signal(10, jumps, 0x08000000);
    int came = save(&outer);
    if (came) r += came + x;
    while (i < 5) { i = i + 1; r += interrupted(i); }
    call3(131, (long)&none, 0, 0);
    return r;
}
/* Out of a handler of a fault, in the frame that faulted. */
static void faulted(int signal) { jump(&outer, 3); }
PROGRAM faults(u64 x) {
    static volatile u64 good = 5;
    volatile u64 r = 0, i = 0;
    on_signal(11, faulted, 0);
    int came = save(&outer);
    if (came) r += came * 100;
    while (i < 6) {
        u64 *at = table[i & 7] & 1 ? (u64 *)&good : 0;
        UNKNOWN(at);
        i = i + 1;
        r += *(volatile u64 *)at;
        if (r & 1) r += 2;
    }
    return r + x;
}
/* Inside a handler. */
static void jumps_inside(int signal) {
    if (save(&outer)) { seen = seen * 2; return; }
    seen = first(seen);
}
PROGRAM inside_handler(u64 x) {
    u64 keep = x * 5;
    UNKNOWN(keep);
    seen = x;
    on_signal(10, jumps_inside, 0);
    raise_signal();
    return x & 2 ? seen + keep : seen;
}

#define LIST(P)                                                                                    \
    P(over_frames) P(sometimes) P(in_any_case) P(activation) P(no_calls) P(every_round) P(retried) \
    P(own_frame) P(handed_on) P(registers) P(builtin) P(unwound) P(contexts) P(out_of_handler)     \
    P(other_stack) P(faults) P(inside_handler)
RUN(LIST)
