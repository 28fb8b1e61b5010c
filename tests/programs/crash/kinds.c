// One crash of each kind, three calls deep: main, outer, then the function named by the argument.
// crates/whydunit/tests/crash.rs says what must be told of each.
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct node {
    long key;
    struct node *next;
    char name[32];
};
static volatile int zero;
static volatile int minus_one = -1;
static char data[64] = "\xc3";
static const char constant[64] = "constant";
static struct node *volatile nothing;

static void null_read(void) { int *pointer = (int *)nothing; printf("%d", *pointer); }
static void null_member(void) { struct node *node = nothing; node->next = node; }
static void null_call(void) { void (*function)(void) = (void (*)(void))(uintptr_t)nothing; function(); }
static void wild_read(void) { char *pointer = (char *)0x123456789000; printf("%d", *pointer); }
static void read_only(void) { *(volatile char *)constant = 1; }
static void no_access(void)
{
    char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[8] = 1;
}
static void execute_data(void) { ((void (*)(void))(uintptr_t)data)(); }
static void not_canonical(void) { long *pointer = (long *)0xdeadbeefdeadbeef; printf("%ld", *pointer); }
static void misaligned(void) { __asm__ volatile("movaps 8(%0), %%xmm0" ::"r"((uintptr_t)data & ~15ul) : "xmm0"); }
static void privileged(void) { __asm__ volatile("hlt"); }
static void divide_by_zero(void) { printf("%d", 100 / zero); }
static void divide_too_large(void) { int smallest = INT32_MIN; printf("%d", smallest / minus_one); }
static void unreachable(void) { __builtin_trap(); }
static void breakpoint(void) { __asm__ volatile("int3"); }
static void behind_file(void)
{
    char name[] = "/tmp/whydunit-crash-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    printf("%d", page[100]);
}
static void aborts(void) { abort(); }
static void asserts(void) { assert(zero == 1 && "zero is one"); }
/* mov eax, 0xc390008b; from its second byte on: mov eax, [rax]; nop; ret */
static __attribute__((naked, noinline)) void spans(void) { __asm__(".byte 0xb8, 0x8b, 0x00, 0x90, 0xc3; ret"); }
static void mid_instruction(void)
{
    __asm__ volatile("xor %%eax, %%eax; call *%0" ::"r"((char *)spans + 1) : "rax", "memory");
}
static void malloc_gives_up(void)
{
    size_t *p = malloc(24);
    p[3] = 0x1111111111111111;
    printf("%p", malloc(4000));
}
static void frees_twice(void) { void *p = malloc(3000), *q = malloc(10); free(p); free(p); free(q); }
static void smashes(void)
{
    volatile char buffer[16];
    for (int i = 0; i < 40 + zero; i++)
        buffer[i] = 'x';
}
static void raises(void) { raise(SIGSEGV); }
static int recurses(int depth) { volatile char frame[200]; frame[0] = (char)depth; return recurses(depth + 1) + frame[0]; }
static int pong(int depth);
static int ping(int depth) { volatile int kept = depth; return pong(depth + 1) + kept; }
static int pong(int depth) { volatile int kept = depth; return ping(depth + 1) + kept; }
static void recursion(void) { recurses(0); }
static void mutual(void) { ping(0); }
static void large_frame(void) { volatile char frame[9 << 20]; frame[0] = 1; }
static void lost_stack(void) { __asm__ volatile("mov $0x5000, %esp; mov $0x6000, %ebp; movl $1, 0x10"); }
static void stack_at_top(void) { __asm__ volatile("mov $-16, %rsp; movl $1, 0x10"); }
static void overwrites_return(void)
{
    void **frame = __builtin_frame_address(0);
    frame[0] = (void *)0x4141414141414141;
    frame[1] = (void *)0x4242424242424242;
}
static void copies(void) { memcpy((void *)(uintptr_t)(0x40 + zero), constant, 40 + (size_t)zero); }

#define KIND(name) {#name, name}
static const struct kind {
    const char *name;
    void (*function)(void);
} kinds[] = {
    KIND(null_read), KIND(null_member), KIND(null_call), KIND(wild_read), KIND(read_only),
    KIND(no_access), KIND(execute_data), KIND(not_canonical), KIND(misaligned), KIND(privileged),
    KIND(divide_by_zero), KIND(divide_too_large), KIND(unreachable), KIND(breakpoint),
    KIND(behind_file), KIND(aborts), KIND(asserts), KIND(frees_twice), KIND(mid_instruction), KIND(malloc_gives_up), KIND(smashes), KIND(raises),
    KIND(recursion), KIND(mutual), KIND(large_frame), KIND(lost_stack), KIND(stack_at_top), KIND(overwrites_return),
    KIND(copies),
};

static void outer(const struct kind *kind)
{
    kind->function();
    puts("not reached");
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0)
            outer(&kinds[i]);
    return 3;
}
