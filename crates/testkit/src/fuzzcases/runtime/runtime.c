/* Runs the generated cases one after another and writes one digest record a case to descriptor 1.
 *
 *   PROGRAM                    all cases
 *   PROGRAM --range A B        cases A up to but not including B, each record written at once
 *   PROGRAM --dump K           case K in full, as text
 *
 * The program has no libc: it must be the smallest thing that still loads, traps and resumes, so
 * that a disagreement is about the instruction under test and not about start-up code. What a
 * case starts from is a pure function of its seed and its patches; addresses are fixed, so a
 * faithful engine reproduces every byte. Masked out are only x87's instruction and data pointers,
 * which a translated program cannot have in common with a native one. */

#include "layout.h"
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

/* What a case starts from and what it leaves behind; enter.S knows the offsets. */
struct state {
    u64 gpr[16];
    u64 flags;
    u64 rip, exit, signal, code, address, trap, error, cr2;
    u64 fs_base, gs_base;
    u64 spare[5];
    u8 fx[512];
    u8 ymm[16][32];
};
_Static_assert(offsetof(struct state, flags) == STATE_FLAGS, "enter.S");
_Static_assert(offsetof(struct state, fx) == STATE_FX, "enter.S");
_Static_assert(offsetof(struct state, ymm) == STATE_YMM, "enter.S");

#define in (*(struct state *)STATE_IN)
#define out (*(struct state *)STATE_OUT)

/* The generator's tables (cases.s). */
struct piece { u32 address, length; }; /* of a patch: `length` bytes follow, padded to 8 */
struct entry { u64 seed; u32 start, flags; u16 patches, masks; u32 spare; };
extern const u32 case_count, case_index[];
extern const u8 case_table[];
extern void run_case(u64 start);
extern void capture_state(void), leave_case(void), restore_signal(void);
extern u64 saved_rsp;
u64 exit_taken;

struct record { u32 index; u8 signal, exit; u16 spare; u64 digest; };

/* --- the kernel --- */

static long sys(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
enum { WRITE = 1, MMAP = 9, MPROTECT = 10, SIGACTION = 13, EXIT = 60, TRUNCATE = 77,
       SIGALTSTACK = 131, ARCH_PRCTL = 158, MEMFD_CREATE = 319 };
enum { SET_GS = 0x1001, SET_FS = 0x1002, GET_FS = 0x1003, GET_GS = 0x1004 };

static void quit(int code) {
    for (;;) sys(EXIT, code, 0, 0, 0, 0, 0);
}

static void put(const void *bytes, u64 length) {
    const u8 *next = bytes;
    while (length) {
        long written = sys(WRITE, 1, (long)next, length, 0, 0, 0);
        if (written <= 0) quit(9);
        next += written;
        length -= written;
    }
}

static void copy(void *to, const void *from, u64 length) {
    for (u64 i = 0; i < length; i++) ((u8 *)to)[i] = ((const u8 *)from)[i];
}

static void clear(void *at, u64 length) {
    for (u64 i = 0; i < length; i++) ((u8 *)at)[i] = 0;
}

/* --- the state a case starts from --- */

static u64 random_state;
static u64 next(void) { /* splitmix64 */
    u64 z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static const u64 edges[] = {
    0x7fffffffffffffff, 0x8000000000000000, 0x7fffffff, 0x80000000, 0xffffffff80000000, 0x7fff,
    0x8000, 0x7f, 0x80, 0xff, 0xffff, 0xffffffff, 0x100000000, 0xaaaaaaaaaaaaaaaa, 63, 64};
static const u64 doubles[] = {
    0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
    0xfff0000000000000, 0x7ff8000000000000, 0x7ff4000000000001, 1, 0x800fffffffffffff,
    0x7fefffffffffffff, 0x0010000000000000, 0x3fe0000000000000, 0x41dfffffffc00000,
    0xc3e0000000000000, 0x4330000000000001};
static const u32 floats[] = {
    0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fa00001, 1,
    0x807fffff, 0x7f7fffff, 0x00800000, 0x3f000000, 0x4f000000, 0xcf000000, 0x4b000001};

/* Any word, but half of the time one where instructions have their edges. */
static u64 word(void) {
    u64 r = next(), pick = r >> 8;
    switch (r & 15) {
    case 0: return 0;
    case 1: return 1;
    case 2: return ~0ull;
    case 3: return edges[pick & 15];
    case 4: return pick & 63;
    case 5: return SCRATCH + (pick % SCRATCH_SIZE);
    case 6: return doubles[pick & 15];
    case 7: return floats[pick & 15] | (u64)floats[pick >> 4 & 15] << 32;
    default: return next();
    }
}

static void set16(u8 *at, u64 value) { copy(at, &value, 2); }

static void random_x87(u8 *fx) {
    u64 r = next();
    u16 control = 0x37f;
    if (r & 1) control = 0x7f | (r >> 8 & 0xf00);
    if ((r & 7) == 1) control = 0x40 | (r >> 8 & 0xf3f);
    u16 status = r >> 24 & 0x7f3f;              /* busy and summary follow from the rest */
    if (r >> 2 & 31) status &= 0x7f00 | (control & 0x3f); /* mostly nothing pending */
    u8 tags = r >> 48;
    if (r >> 40 & 1) tags = r >> 41 & 1 ? 0xff : 0xff >> (r >> 48 & 7);
    set16(fx, control);
    set16(fx + 2, status);
    set16(fx + 4, tags);
    for (int i = 0; i < 8; i++) {
        u64 kind = next(), mantissa = word() | 1ull << 63;
        u64 exponent = (kind >> 8 & 0x8000) | (16383 - 64 + (kind >> 32 & 127));
        switch (kind & 15) {
        case 0: mantissa = 0, exponent &= 0x8000; break;
        case 1: mantissa = 1ull << 63, exponent |= 0x7fff; break;
        case 2: exponent |= 0x7fff; break;
        case 3: exponent &= 0x8000; break;
        case 4: mantissa = word(), exponent = kind >> 16; break;
        case 5: mantissa = 1ull << 63, exponent = 16383 | (exponent & 0x8000); break;
        }
        copy(fx + 32 + 16 * i, &mantissa, 8);
        set16(fx + 40 + 16 * i, exponent);
    }
}

static u64 random_mxcsr(void) {
    u64 r = next(), mxcsr = 0x1f80 | (r >> 8 & 0xe07f);
    if ((r & 3) == 0) mxcsr = r >> 8 & 0xffff;
    if ((r & 3) == 1) mxcsr = 0x1f80;
    return mxcsr;
}

static u64 before[SCRATCH_SIZE / 8];

static const struct entry *prepare(u32 index) {
    const struct entry *entry = (const void *)(case_table + case_index[index]);
    random_state = entry->seed;
    clear(&in, sizeof in);
    clear(&out, sizeof out);
    for (int i = 0; i < 16; i++) in.gpr[i] = word();
    u64 r = next();
    in.flags = 0x202 | (r & 0x8d5) | (r >> 16 & 3 ? 0 : 0x400);
    random_x87(in.fx);
    u32 mxcsr = random_mxcsr();
    copy(in.fx + 24, &mxcsr, 4);
    for (int i = 0; i < 64; i++) {
        u64 value = word();
        copy(&in.ymm[i / 4][i % 4 * 8], &value, 8);
    }
    u64 *scratch = (u64 *)SCRATCH;
    for (int i = 0; i < SCRATCH_SIZE / 8; i++) scratch[i] = word();
    const u8 *at = (const u8 *)(entry + 1);
    for (int i = 0; i < entry->patches; i++) {
        const struct piece *patch = (const void *)at;
        copy((void *)(u64)patch->address, at + sizeof *patch, patch->length);
        at += sizeof *patch + ((patch->length + 7) & ~7u);
    }
    for (int i = 0; i < SCRATCH_SIZE / 8; i++) before[i] = scratch[i];
    return entry;
}

/* --- signals --- */

struct signal_info { int signal, error, code, pad; u64 address; };
struct context {
    u64 flags, link;
    struct { u64 sp; int flags, pad; u64 size; } stack;
    u64 r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
    u16 cs, gs, fs, ss;
    u64 error, trap, mask, cr2, fpstate;
};

static void on_signal(int signal, struct signal_info *info, struct context *context) {
    if (context->rip == (u64)capture_state || !saved_rsp) quit(8);
    u64 gpr[16] = {context->rax, context->rcx, context->rdx, context->rbx,
                   context->rsp, context->rbp, context->rsi, context->rdi,
                   context->r8,  context->r9,  context->r10, context->r11,
                   context->r12, context->r13, context->r14, context->r15};
    copy(out.gpr, gpr, sizeof gpr);
    out.flags = context->eflags;
    out.rip = context->rip;
    out.signal = signal;
    out.code = (u64)(long)info->code;
    out.address = info->address;
    out.trap = context->trap;
    out.error = context->error;
    out.cr2 = context->trap == 14 ? context->cr2 : 0; /* else whatever page fault came last */
    const u8 *fp = (const u8 *)context->fpstate;
    copy(out.fx, fp, 512);
    u64 present = *(const u64 *)(fp + 512);
    for (int i = 0; i < 16; i++) {
        copy(out.ymm[i], fp + 160 + 16 * i, 16);
        if (present & 4) copy(out.ymm[i] + 16, fp + 576 + 16 * i, 16);
    }
    context->rip = (u64)leave_case;
    context->rsp = saved_rsp;
    context->eflags = 0x202;
}

static void catch_signals(void) {
    static u8 stack[32768] __attribute__((aligned(64)));
    struct { void *sp; int flags; u64 size; } alt = {stack, 0, sizeof stack};
    sys(SIGALTSTACK, (long)&alt, 0, 0, 0, 0, 0);
    /* SA_SIGINFO, SA_ONSTACK, SA_RESTORER */
    struct { void *handler; u64 flags; void *restorer; u64 mask; } action = {
        on_signal, 0x4 | 0x08000000 | 0x04000000, restore_signal, 0};
    static const int caught[] = {4, 5, 7, 8, 11};
    for (int i = 0; i < 5; i++) sys(SIGACTION, caught[i], (long)&action, 0, 8, 0, 0);
}

/* --- one case --- */

static void mask(const struct entry *entry) {
    const u8 *at = (const u8 *)(entry + 1);
    for (int i = 0; i < entry->patches; i++)
        at += sizeof(struct piece) + ((((const struct piece *)at)->length + 7) & ~7u);
    for (int i = 0; i < entry->masks; i++, at += sizeof(struct piece)) {
        const struct piece *hole = (const void *)at;
        for (u64 byte = hole->address; byte < (u64)hole->address + hole->length; byte++)
            if (byte >= SCRATCH && byte < SCRATCH + SCRATCH_SIZE) *(u8 *)byte = 0;
    }
    clear(out.fx + 6, 18);    /* FOP, FIP, FDP */
    clear(out.fx + 160, 352); /* the xmm registers are in ymm, the rest is reserved */
}

static void execute(const struct entry *entry) {
    exit_taken = 0;
    run_case(entry->start);
    out.exit = exit_taken;
    if (entry->flags & CASE_BASES) {
        sys(ARCH_PRCTL, GET_FS, (long)&out.fs_base, 0, 0, 0, 0);
        sys(ARCH_PRCTL, GET_GS, (long)&out.gs_base, 0, 0, 0, 0);
        sys(ARCH_PRCTL, SET_FS, FS_BASE, 0, 0, 0, 0);
        sys(ARCH_PRCTL, SET_GS, 0, 0, 0, 0, 0);
    }
    mask(entry);
}

static u64 digest(void) {
    u64 hash = 0xcbf29ce484222325;
    const u64 *words[2] = {(const u64 *)&out, (const u64 *)SCRATCH};
    const u64 counts[2] = {sizeof out / 8, SCRATCH_SIZE / 8};
    for (int part = 0; part < 2; part++)
        for (u64 i = 0; i < counts[part]; i++) {
            hash = (hash ^ words[part][i]) * 0x9fb21c651e98df25;
            hash ^= hash >> 29;
        }
    return hash;
}

/* --- output --- */

static struct record records[256];
static u32 held;

static void flush(void) {
    put(records, held * sizeof records[0]);
    held = 0;
}

static char text[256];
static u32 text_length;
static void say(const char *word) {
    while (*word) text[text_length++] = *word++;
}
static void say_bytes(const u8 *bytes, int length) { /* most significant first */
    for (int i = length - 1; i >= 0; i--) {
        text[text_length++] = "0123456789abcdef"[bytes[i] >> 4];
        text[text_length++] = "0123456789abcdef"[bytes[i] & 15];
    }
}
static void end_line(void) {
    say("\n");
    put(text, text_length);
    text_length = 0;
}
static void say_number(u64 number) {
    if (number >= 10) say_number(number / 10);
    text[text_length++] = '0' + number % 10;
}
static void field(const char *side, const char *name, int number, const void *bytes, int length) {
    say(side);
    say(name);
    if (number >= 0) say_number(number);
    say(" ");
    say_bytes(bytes, length);
    end_line();
}

static void dump_state(const char *side, const struct state *state) {
    static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    for (int i = 0; i < 16; i++) field(side, names[i], -1, &state->gpr[i], 8);
    field(side, "flags", -1, &state->flags, 8);
    field(side, "mxcsr", -1, state->fx + 24, 4);
    field(side, "fcw", -1, state->fx, 2);
    field(side, "fsw", -1, state->fx + 2, 2);
    field(side, "ftw", -1, state->fx + 4, 1);
    for (int i = 0; i < 8; i++) field(side, "st", i, state->fx + 32 + 16 * i, 10);
    for (int i = 0; i < 16; i++) field(side, "ymm", i, state->ymm[i], 32);
}

static void dump(u32 index) {
    const struct entry *entry = prepare(index);
    dump_state("in.", &in);
    execute(entry);
    dump_state("out.", &out);
    static const char *const names[] = {"rip", "exit", "signal", "code", "address", "trap", "error",
                                        "cr2", "fs_base", "gs_base"};
    for (int i = 0; i < 10; i++) field("out.", names[i], -1, &out.rip + i, 8);
    const u64 *scratch = (const u64 *)SCRATCH;
    for (u64 i = 0; i < SCRATCH_SIZE / 8; i++)
        if (before[i] != scratch[i]) {
            u64 address = SCRATCH + 8 * i;
            say("memory ");
            say_bytes((const u8 *)&address, 4);
            say(" ");
            say_bytes((const u8 *)&before[i], 8);
            say(" -> ");
            say_bytes((const u8 *)&scratch[i], 8);
            end_line();
        }
}

/* --- start-up --- */

static void map(u64 at, u64 length, int protection, int flags, int descriptor) {
    if (sys(MMAP, at, length, protection, flags, descriptor, 0) != (long)at) quit(7);
}

static void set_up(void) {
    enum { READ_WRITE = 3, READ = 1, PRIVATE_FIXED_ANONYMOUS = 0x32, SHARED_FIXED = 0x11 };
    map(SCRATCH, SCRATCH_SIZE, READ_WRITE, PRIVATE_FIXED_ANONYMOUS, -1);
    map(STATE_IN, 0x2000, READ_WRITE, PRIVATE_FIXED_ANONYMOUS, -1);
    map(READ_ONLY, 0x1000, READ_WRITE, PRIVATE_FIXED_ANONYMOUS, -1);
    random_state = 1;
    for (u64 i = 0; i < 0x1000 / 8; i++) ((u64 *)READ_ONLY)[i] = word();
    sys(MPROTECT, READ_ONLY, 0x1000, READ, 0, 0, 0);
    int empty = sys(MEMFD_CREATE, (long)"empty", 0, 0, 0, 0, 0);
    map(PAST_FILE, 0x1000, READ_WRITE, SHARED_FIXED, empty); /* an access is SIGBUS */
    sys(ARCH_PRCTL, SET_FS, FS_BASE, 0, 0, 0, 0);
    catch_signals();
}

static u32 number(const char *digits) {
    u32 value = 0;
    while (*digits >= '0' && *digits <= '9') value = value * 10 + (*digits++ - '0');
    return value;
}

void runtime_main(u64 *stack) {
    u64 count = stack[0];
    char **arguments = (char **)(stack + 1);
    set_up();
    u32 from = 0, to = case_count, keep = 256;
    if (count == 3) {
        dump(number(arguments[2]));
        quit(0);
    }
    if (count == 4) from = number(arguments[2]), to = number(arguments[3]), keep = 1;
    for (u32 index = from; index < to && index < case_count; index++) {
        execute(prepare(index));
        records[held++] = (struct record){index, out.signal, out.exit, 0, digest()};
        if (held >= keep) flush();
    }
    flush();
    quit(0);
}
