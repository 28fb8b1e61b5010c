// build: -O1 -mavx2
// Wild pointers: accesses at random addresses over all that a pointer can say, at text that is taken for a
// pointer and at numbers. Each must fault as it does where nothing else shares the address space. With the
// argument `all` also 32-bit addresses that the tool has, which only modes that test accesses refuse.
#include "check.h"
#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/socket.h>
#include <fcntl.h>
typedef unsigned long u64;
static sigjmp_buf back;
static volatile u64 reported;
static volatile int code, signalled;
static void handler(int s, siginfo_t *si, void *uc)
{
    (void)uc;
    signalled = s, code = si->si_code, reported = (u64)si->si_addr;
    siglongjmp(back, 1);
}
static u64 state = 88172645463325252;
static u64 next(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
/* Where a program and its libraries are, with or without randomisation. */
static int may_be_mapped(u64 at)
{
    u64 top = at >> 40;
    return top == 0x55 || top == 0x56 || top >= 0x7e;
}
static u64 text(int length, int utf8)
{
    u64 word = 0;
    for (int i = 0; i < length; i++) {
        unsigned char c = 0x20 + next() % 0x5f;
        if (next() % 16 == 0) c = "\t\n\r"[next() % 3];
        if (utf8 && next() % 2) c = 0x80 + next() % 0x80;
        word |= (u64)c << 8 * i;
    }
    return word;
}
enum { READ, WRITE, UPDATE, WIDE_READ, WIDE_WRITE, ALIGNED, REP_READ, REP_WRITE, COMPARE, GATHER, MASKED,
       BITS, STACK, JUMP, RETURN, CALLED, KINDS };
static volatile u64 sink;
static char buffer[64];
static const int some[8] = {-1, 0, -1, 0, 0, 0, 0, 0};
static void touch(u64 at, int kind)
{
    char *p = (char *)at;
    switch (kind) {
    case READ: sink = *(volatile char *)p; break;
    case WRITE: *(volatile char *)p = 1; break;
    case UPDATE: *(volatile int *)p += 3; break;
    case WIDE_READ: sink = (u64)_mm256_extract_epi64(_mm256_loadu_si256((__m256i *)p), 1); break;
    case WIDE_WRITE: _mm256_storeu_si256((__m256i *)p, _mm256_set1_epi8(1)); break;
    case ALIGNED: sink = (u64)_mm_cvtsi128_si64(_mm_load_si128((__m128i *)p)); break;
    case REP_READ: {
        void *d = buffer; const void *s = p; u64 n = 16;
        __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
        break;
    }
    case REP_WRITE: {
        void *d = p; u64 n = 4;
        __asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(0L) : "memory");
        break;
    }
    case COMPARE: {
        void *d = p; u64 n = 9;
        __asm__ volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(7) : "memory", "cc");
        break;
    }
    case GATHER: {
        __m256i mask = _mm256_loadu_si256((const __m256i *)some), zero = _mm256_setzero_si256();
        zero = _mm256_mask_i32gather_epi32(zero, (const int *)p, zero, mask, 4);
        sink = (u64)_mm256_extract_epi64(zero, 0);
        break;
    }
    case MASKED:
        _mm256_maskstore_epi32((int *)p, _mm256_loadu_si256((const __m256i *)some), _mm256_set1_epi32(1));
        break;
    case BITS: __asm__ volatile("btsq %1, (%0)" : : "r"(p), "r"(3L) : "memory", "cc"); break;
    case STACK:
        __asm__ volatile("mov %%rsp, %%rbx; mov %0, %%rsp; push %%rax; mov %%rbx, %%rsp"
                         : : "r"(at + 8) : "rbx", "memory");
        break;
    case JUMP: __asm__ volatile("jmp *%0" : : "r"(p)); break;
    case RETURN: __asm__ volatile("mov %%rsp, %%rbx; push %0; ret" : : "r"(p) : "rbx"); break;
    case CALLED: ((void (*)(void))p)(); break;
    }
}
static u64 counts[5];
static void try(u64 at, int kind)
{
    if (may_be_mapped(at) || at < 4096) return;
    if (kind == ALIGNED) at &= ~15L;
    signalled = code = 0, reported = 0;
    if (!sigsetjmp(back, 0)) touch(at, kind);
    int as_natively = signalled == SIGSEGV && code == SEGV_MAPERR && reported == at;
    counts[as_natively ? 0 : 1]++;
    if (!as_natively)
        printf("%#lx kind %d: signal %d code %d at %#lx\n", at, kind, signalled, code, reported);
}
static void expect(long answer, u64 at, const char *what)
{
    counts[2]++;
    if (answer == -1 && errno == EFAULT) counts[3]++;
    else printf("%s %#lx: %ld errno %d\n", what, at, answer, errno);
}
static void ask(u64 at, int zero, int pair)
{
    struct iovec piece[2] = {{buffer, 4}, {(void *)at, 8}};
    struct msghdr message = {.msg_iov = piece, .msg_iovlen = 2};
    if (may_be_mapped(at) || at < 4096) return;
    expect(read(zero, (void *)at, 16), at, "read");
    expect(write(pair, (void *)at, 16), at, "write");
    expect(open((void *)at, O_RDONLY), at, "open");
    expect(readv(zero, piece + 1, 1), at, "readv");
    expect(writev(pair, piece + 1, 1), at, "writev");
    expect(sendmsg(pair, &message, 0), at, "sendmsg");
    CHECK(readv(zero, piece, 2) == 4);                 /* what comes before the bad piece is read */
    errno = 0;
    CHECK(madvise((void *)(at & ~4095L), 4096, MADV_DONTNEED) == -1 && errno == ENOMEM);
}
int main(int argc, char **argv)
{
    int all = argc > 1 && !strcmp(argv[1], "all"), pair[2];
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    MUST(sigaltstack(&stack, NULL));
    sigaction(SIGSEGV, &act, NULL), sigaction(SIGBUS, &act, NULL);
    int zero = open("/dev/zero", O_RDONLY);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    for (int i = 0; i < 6000; i++) try(next() >> 17, (int)(next() % KINDS));
    for (int i = 0; i < 6000; i++) try(text(6, 0), (int)(next() % KINDS));
    for (int i = 0; i < 2000; i++) try(text(5, 0), (int)(next() % KINDS));
    for (int i = 0; i < 2000; i++) try(text(6, 1) & ~(0x80L << 40), (int)(next() % KINDS));
    for (int i = 0; i < 2000; i++) try(next() % 0x10000000, (int)(next() % KINDS));
    for (int i = 0; i < 2000; i++) {                   /* four letters, as in "test" */
        u64 word = 0;
        for (int k = 0; k < 4; k++) word |= (u64)(k == 0 ? 'a' + next() % 26 : "aeiostrnl"[next() % 9]) << 8 * k;
        try(word, (int)(next() % KINDS));
    }
    for (int i = 0; i < 256; i++) for (int k = 0; k < KINDS; k++) try((u64)i << 39 | 0x10, k);
    if (all) for (int i = 0; i < 3000; i++) try(0x6ff00000 + next() % 0x10000000, (int)(next() % KINDS));
    if (all) for (u64 at = 0x2000000000000 >> 4; at < 0x4410000000000 >> 4; at += 0x3f00000123) try(at, (int)(next() % KINDS));
    for (int i = 0; i < 200; i++) ask(next() >> 17, zero, pair[0]), ask(text(6, 0), zero, pair[0]);
    if (all) for (int i = 0; i < 200; i++) ask(0x70000000 + next() % 0xfff0000, zero, pair[0]);
    printf("%lu faults, %lu else; %lu of %lu calls refused\n", counts[0], counts[1], counts[3], counts[2]);
    return ok();
}
