// build: -O1 -mno-red-zone
// Integer oddities with a checksum over results and flags: lahf/sahf, adc/sbb chains, rotates through
// carry, mul/div of every width, bt* on memory, bsf/bsr/tzcnt/lzcnt/popcnt, cmpxchg8b/16b, xadd, bswap,
// movbe-free loads, shld/shrd, enter/leave, xlat, loop/loopne/jrcxz, setcc, cmov, string operations.
#include "check.h"
static uint64_t sum = 14695981039346656037ull;
static void mix(uint64_t v) { for (int i = 0; i < 8; i++) sum = (sum ^ (v >> (8 * i) & 255)) * 1099511628211ull; }
static uint64_t state = 88172645463325252ull;
static uint64_t next(void) { state ^= state << 13, state ^= state >> 7, state ^= state << 17; return state; }
#define FLAGS "pushf; pop %[f]"
#define TWO(text, mask)                                                                      \
    do {                                                                                     \
        uint64_t x_ = next(), y_ = next(), f_;                                               \
        __asm__ volatile(text "\n" FLAGS : "+a"(x_), "+d"(y_), [f] "=&r"(f_)::"cc", "rcx", "memory"); \
        mix(x_), mix(y_), mix(f_ & (mask));                                                  \
    } while (0)
enum { ALL = 0x8d5, NO_AF = 0x8c5, CARRY = 1, ZERO = 0x40 };
int main(void)
{
    for (int i = 0; i < 2000; i++) {
        TWO("add %%rdx, %%rax; adc %%edx, %%eax; adc %%dx, %%ax; adc %%dl, %%al", ALL);
        TWO("sub %%rdx, %%rax; sbb %%edx, %%eax; sbb $7, %%ax; sbb %%dh, %%ah", ALL);
        TWO("cmp %%rdx, %%rax; lahf; seto %%al; xchg %%eax, %%edx; sahf", 0xd5);
        TWO("clc; rcl $1, %%rax; rcr $1, %%edx; rcl %%dx; rcr %%al", CARRY);
        TWO("rol $13, %%rax; ror $5, %%edx; rol $3, %%ah", CARRY);
        TWO("mov %%edx, %%ecx; shl %%cl, %%rax; shr %%cl, %%edx", 0);
        TWO("mov %%eax, %%ecx; sar %%cl, %%rdx; shld $9, %%rdx, %%rax", 0);
        TWO("shrd $21, %%rax, %%rdx; test %%rdx, %%rdx", NO_AF);
        TWO("mul %%rdx", CARRY);
        TWO("imul %%edx", CARRY);
        TWO("imul $-77, %%rdx, %%rax; imul %%ax, %%dx", CARRY);
        TWO("mov %%rdx, %%rcx; xor %%edx, %%edx; or $1, %%rcx; div %%rcx", 0);
        TWO("mov %%edx, %%ecx; cqto; or $5, %%rcx; and $0x7fffffff, %%rcx; idiv %%rcx", 0);
        TWO("movzbl %%al, %%eax; or $1, %%dl; div %%dl", 0);
        TWO("neg %%rax; not %%rdx; inc %%al; dec %%dh", ALL);
        TWO("bt $33, %%rax; setc %%dl; bts %%edx, %%eax", CARRY);
        TWO("btr %%rax, %%rdx; btc $60, %%rax", CARRY);
        TWO("or $1, %%rax; bsf %%rax, %%rdx; bsr %%rax, %%rcx; add %%rcx, %%rax", ALL);
        TWO("popcnt %%rax, %%rdx; popcnt %%ax, %%ax", 0);
        TWO("bswap %%rax; bswap %%edx; xchg %%al, %%dh", 0);
        TWO("movsbq %%al, %%rax; movswl %%dx, %%edx; cwtl; cltq; cqto", 0);
        TWO("push %%rax; push %%rdx; xadd %%rax, (%%rsp); xadd %%edx, 8(%%rsp); pop %%rcx; add %%rcx, %%rax; pop %%rcx; add %%rcx, %%rdx", ALL);
        TWO("push %%rdx; btsq $100, -8(%%rsp); pop %%rdx; cmp %%rdx, %%rax", ALL);
        TWO("push %%rax; lock incq (%%rsp); lock negl 4(%%rsp); lock btsw $3, (%%rsp); pop %%rax; test %%rax, %%rax", NO_AF);
        TWO("mov %%rax, %%rcx; push %%rdx; cmpxchg %%rcx, (%%rsp); pop %%rdx", ALL);
        TWO("cmp %%eax, %%edx; cmovg %%rax, %%rdx; cmovb %%edx, %%eax; setp %%al; setle %%dl", ALL);
        TWO("mov $9, %%ecx; 1: add %%rdx, %%rax; loop 1b; cmp %%rax, %%rdx", ALL);
        TWO("mov $70, %%ecx; 1: add %%rdx, %%rax; test $63, %%al; loopne 1b; add %%rcx, %%rax", ALL);
        TWO("and $3, %%eax; mov %%rax, %%rcx; jrcxz 1f; add $100, %%rdx; 1: add %%rdx, %%rax", ALL);
        TWO("enter $32, $0; mov %%rax, -8(%%rbp); mov %%rdx, -16(%%rbp); mov -12(%%rbp), %%rax; leave; or %%rax, %%rax", NO_AF);
        TWO("pushf; pop %%rcx; xor $1, %%rcx; and $0xcd5, %%rcx; or $2, %%rcx; push %%rcx; popf; cld", 0xd5);
        TWO("stc; cmc; setc %%al; clc; adc $0, %%rdx", ALL);
    }
    unsigned char table[256];
    for (int i = 0; i < 256; i++) table[i] = (unsigned char)(i * 167 + 13);
    for (int i = 0; i < 256; i++) {
        uint64_t al = (uint64_t)i;
        __asm__("xlat" : "+a"(al) : "b"(table) : "memory");
        mix(al);
    }
    __attribute__((aligned(16))) uint64_t pair[2] = {1, 2};
    for (uint64_t i = 0; i < 500; i++) {
        uint64_t low = i % 3 ? pair[0] : 99, high = pair[1];
        uint8_t done;
        __asm__ volatile("lock cmpxchg16b %1; setz %0" : "=q"(done), "+m"(pair), "+a"(low), "+d"(high) : "b"(next()), "c"(i) : "cc");
        mix(done + low + high);
    }
    char text[300], copy[300];
    for (int i = 0; i < 300; i++) text[i] = (char)(i * 31);
    for (unsigned n = 0; n < 290; n += 7) {
        void *di = copy, *si = text;
        unsigned long c = n;
        memset(copy, 0, sizeof copy);
        __asm__ volatile("rep movsb" : "+D"(di), "+S"(si), "+c"(c)::"memory");
        c = n / 4, di = copy + 3;
        __asm__ volatile("rep stosw" : "+D"(di), "+c"(c) : "a"(n) : "memory");
        for (int i = 0; i < 300; i++) mix((uint64_t)copy[i]);
        si = text, di = copy, c = 300;
        __asm__ volatile("repe cmpsb" : "+D"(di), "+S"(si), "+c"(c)::"cc", "memory");
        mix(c);
        di = text, c = 300;
        __asm__ volatile("repne scasb" : "+D"(di), "+c"(c) : "a"(n) : "cc", "memory");
        mix(c);
        uint32_t loaded = 0;
        si = text + n;
        __asm__ volatile("lodsb; lodsw; std; lodsl; cld" : "+S"(si), "+a"(loaded)::"memory", "cc");
        mix(loaded + (uint64_t)((char *)si - text));
    }
    printf("%016lx\n", sum);
    return ok();
}
