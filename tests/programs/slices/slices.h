/* For programs whose slices are compared with a slow reference: no library, no loader; each program
 * is a function that makes a number from a number, and all numbers are written out at the end. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
#define PROGRAM static __attribute__((noinline, noclone)) u64
#define HELPER static __attribute__((noinline, noclone))
/* Hides from the compiler what a value is. */
#define UNKNOWN(value) __asm__ volatile("" : "+r"(value))

static inline long call6(long n, long a, long b, long c, long d, long e, long f) {
    long r;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
}
static inline long call3(long n, long a, long b, long c) { return call6(n, a, b, c, 0, 0, 0); }

void *memcpy(void *to, const void *from, u64 n) {
    void *result = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    return result;
}
void *memset(void *to, int value, u64 n) {
    void *result = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
    return result;
}

__asm__(".globl _start\n_start: xor %ebp,%ebp\n and $-16,%rsp\n call run\n ud2\n");

/* Runs the programs of a list P(one) P(two) … */
#define RUN(list)                                                                                  \
    struct results { list(RESULT) } results;                                                       \
    void run(void) {                                                                               \
        list(ONE) call3(1, 1, (long)&results, sizeof results);                                     \
        call3(231, 0, 0, 0);                                                                       \
    }
#define RESULT(name) u64 name;
#define ONE(name) results.name = name(sizeof #name);
