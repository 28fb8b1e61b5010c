/* Instructions whose results hang on their operands in ways of their own. */
#include "slices.h"
typedef u32 vector __attribute__((vector_size(16)));

/* Zero by XOR depends on nothing. */
PROGRAM xor_idiom(u64 x) { u64 r = x; __asm__("xor %k0, %k0" : "+r"(r)); return r + 3; }
/* So does zero by SUB; the flags do not matter. */
PROGRAM sub_idiom(u64 x) { u64 r = x; __asm__("sub %0, %0" : "+r"(r)); return r ^ 1; }
/* The carry of one addition goes into the next. */
PROGRAM wide_sum(u64 x) { unsigned __int128 a = (unsigned __int128)x << 60, b = a * 3 + ~0ul; return (a + b) >> 64; }
/* Two results of one multiplication. */
PROGRAM wide_product(u64 x) { unsigned __int128 p = (unsigned __int128)(x << 40) * (x << 33); return (u64)(p >> 64) + 1; }
/* Quotient and remainder. */
PROGRAM division(u64 x) { volatile u64 d = x / 3 + 1; return (x * 1000) % d; }
/* Half of a register is written, the upper half becomes zero. */
PROGRAM half_write(u64 x) { u64 r = ~0ul; __asm__("mov %k1, %k0" : "+r"(r) : "r"(x)); return r; }
/* A byte of a register is written, the rest stays. */
PROGRAM byte_write(u64 x) { u64 r = x << 16; __asm__("mov $5, %b0" : "+r"(r)); return r; }
/* The second byte of a register. */
PROGRAM high_byte(u64 x) { u64 r = x << 8; __asm__("mov %%ah, %%al" : "+a"(r)); return r & 0xff; }
/* A conditional move looks at both values and the flags. */
PROGRAM conditional_move(u64 x) { u64 r = 1; __asm__("cmp $5, %1\n cmovb %1, %0" : "+r"(r) : "r"(x) : "cc"); return r; }
/* A flag as a value. */
PROGRAM flag(u64 x) { u8 r; __asm__("test $4, %1\n setnz %0" : "=r"(r) : "r"((u32)x) : "cc"); return r; }
/* The borrow as a mask. */
PROGRAM borrow(u64 x) { u64 r; __asm__("cmp $9, %1\n sbb %0, %0" : "=r"(r) : "r"(x) : "cc"); return r; }
/* Rotated through the carry. */
PROGRAM rotation(u64 x) { __asm__("add %0, %0\n rcl $1, %0\n ror $3, %0" : "+r"(x) : : "cc"); return x; }
static inline u64 counted(u64 x) { __asm__("popcnt %0, %0" : "+r"(x) : : "cc"); return x; }
/* Bytes turned around, bits counted and found. */
PROGRAM bits(u64 x) { return __builtin_bswap64(x) ^ counted(x) ^ __builtin_ctzl(x | 8); }
/* Exchanged with memory. */
PROGRAM exchange(u64 x) { u64 m = x + 4, r = x; __asm__("xchg %0, %1" : "+r"(r), "+m"(m)); return r; }
/* Through floating point and back. */
PROGRAM floating(u64 x) { double d = x; d = d * 1.5 + 2.0; volatile float f = d; return (u64)(f / 2); }
/* Through the old floating point. */
PROGRAM long_double(u64 x) { volatile long double d = x; d = d * 3 - 1; return (u64)d; }
/* Lanes of a vector. */
PROGRAM lanes(u64 x) { vector a = {x, 2, 3, 4}, b = {5, x, 7, 8}; volatile vector c = a + b; return c[2]; }
/* Lanes change places. */
PROGRAM shuffled(u64 x) { vector a = {x, x + 1, 3, 4}; vector m = {2, 0, 1, 3}; UNKNOWN(x); volatile vector c = __builtin_shuffle(a, m); return c[1]; }
/* The address of an address. */
PROGRAM lea(u64 x) { u64 r; __asm__("lea 5(%1,%1,4), %0" : "=r"(r) : "r"(x)); return r; }
#define LIST(P) P(xor_idiom) P(sub_idiom) P(wide_sum) P(wide_product) P(division) P(half_write) \
    P(byte_write) P(high_byte) P(conditional_move) P(flag) P(borrow) P(rotation) P(bits) P(exchange) \
    P(floating) P(long_double) P(lanes) P(shuffled) P(lea)
RUN(LIST)
