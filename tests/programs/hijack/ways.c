// build: -O0 -fno-stack-protector -no-pie -Wl,-z,norelro,-z,lazy
// Ways to overwrite what control depends on. The argument names one; the store that does it stands on the
// line that ends in its name. Those that end well natively exit with 0 after printing "won".
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef void (*Function)(void);
static void won(void)
{
    if (write(1, "won\n", 4) == 4) _exit(0);
}
static void nothing(void) {}
static const char text[96] = "ABCDEFGHABCDEFGHABCDEFGHABCDEFGHABCDEFGHABCDEFGHABCDEFGHABCDEFG";
static volatile int zero, sink;
static void use(void *p) { __asm__ volatile("" ::"r"(p) : "memory"); }

static __attribute__((noinline)) void *slot(void *frame) { return (char *)frame + 8; }

/* Return addresses. */
static __attribute__((noinline)) void by_store(void)
{
    long *back = slot(__builtin_frame_address(0));
    *back = (long)won; // return-store
}
static __attribute__((noinline)) void by_index(void)
{
    long room[2] = {0, 0};
    long at = (long *)slot(__builtin_frame_address(0)) - room;
    room[at] = (long)won; // return-index
    use(room);
}
static __attribute__((noinline)) void by_memcpy(const char *from, size_t size)
{
    char room[16];
    memcpy(room, from, size); // return-memcpy
    use(room);
}
static __attribute__((noinline)) void by_strcpy(const char *from)
{
    char room[16];
    strcpy(room, from); // return-strcpy
    use(room);
}
static __attribute__((noinline)) void by_memset(size_t size)
{
    char room[16];
    memset(room, 'x', size); // return-memset
    use(room);
}
static __attribute__((noinline)) void by_read(int from, size_t size)
{
    char room[16];
    if (read(from, room, size) < 0) abort(); // return-read
    use(room);
}
static __attribute__((noinline)) void by_byte(void)
{
    char *back = slot(__builtin_frame_address(0));
    back[0] += 2; // return-byte
}
static __attribute__((noinline)) void into_caller(long *back)
{
    *back = (long)won; // return-caller
}
static __attribute__((noinline)) void with_caller(void)
{
    into_caller(slot(__builtin_frame_address(0)));
}
static __attribute__((noinline)) void loops(int count)
{
    static int i;
    char room[16];
    for (i = 0; i < count; i++)
        room[i] = 'y'; // return-loop
    use(room);
}
static __attribute__((noinline)) void by_snprintf(void)
{
    char room[16];
    snprintf(room, 64, "%s", text); // return-snprintf
    use(room);
}
static __attribute__((noinline)) void nowhere(void)
{
    long *back = slot(__builtin_frame_address(0));
    *back = 0x4242424242; // return-nowhere
}
static __attribute__((noinline)) void no_address(void)
{
    long *back = slot(__builtin_frame_address(0));
    *back = 0x4141414141414141; // return-noncanonical
}

/* The frame pointer that a function has saved. */
static __attribute__((noinline)) void frame_by_store(void)
{
    long *saved = __builtin_frame_address(0);
    *saved = 0x4343434343; // frame-store
}
static __attribute__((noinline)) void frame_by_memcpy(void)
{
    char room[16];
    memcpy(room, text, (size_t)((char *)__builtin_frame_address(0) - room) + 8); // frame-memcpy
    use(room);
}
static __attribute__((noinline)) int goes_on(Function inner)
{
    volatile int local = 3;
    inner();
    return local;
}
static __attribute__((noinline)) void leaves(Function inner)
{
    inner();
}
static long fake[4];
static __attribute__((noinline)) void frame_pivot(void)
{
    long *saved = __builtin_frame_address(0);
    *saved = (long)fake; // frame-pivot
}

/* Pointers to functions. */
static struct { char name[16]; Function call; } in_data = {"data", nothing}, in_bss, *in_heap;
static void through(Function *place) { (*place)(); }
static void pointer(const char *way)
{
    struct { char name[16]; Function call; } on_stack = {"stack", nothing};
    use(&on_stack);
    if (!strcmp(way, "pointer-stack")) {
        strcpy(on_stack.name, "0123456789abcdefABCDEF"); // pointer-stack
        through(&on_stack.call);
    } else if (!strcmp(way, "pointer-data")) {
        memcpy(in_data.name, text, 24); // pointer-data
        through(&in_data.call);
    } else if (!strcmp(way, "pointer-bss")) {
        memset(in_bss.name, 'b', 22); // pointer-bss
        through(&in_bss.call);
    } else {
        in_heap = malloc(sizeof *in_heap);
        in_heap->call = nothing;
        strcpy(in_heap->name, "0123456789abcdefABCDE"); // pointer-heap
        through(&in_heap->call);
    }
}
static Function table[4] = {nothing, nothing, nothing, nothing};
static void vtable(void)
{
    static struct { char name[16]; Function *methods; } object = {"object", table};
    memcpy(&table[2], "methods!", 8); // pointer-table
    object.methods[2 + zero]();
}

/* The table of the linker, by way of the stub that jumps through it, and the functions for the end. */
static __attribute__((noinline)) void linked(void)
{
    unsigned char *stub;
    int apart;
    __asm__("leaq rand@PLT(%%rip), %0" : "=r"(stub));
    memcpy(&apart, stub + 2, sizeof apart);
    memcpy(stub + 6 + apart, text, 6); // pointer-linked
    sink += rand();
}
extern Function __fini_array_start[];
static __attribute__((noinline)) void at_end(void)
{
    memset(__fini_array_start, 'f', 6); // pointer-end
    exit(0);
}
/* What the C library keeps of a function, mangled. */
static long *kept(Function function)
{
    unsigned long guard, from, to, start = 0;
    __asm__("movq %%fs:0x30, %0" : "=r"(guard));
    unsigned long mangled = (unsigned long)function ^ guard;
    mangled = mangled << 17 | mangled >> 47;
    char line[512], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    int inside = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3) continue;
        inside = strstr(line, "libc.so") || inside && from == start;
        start = to;
        for (unsigned long at = from; inside && rights[1] == 'w' && at < to; at += 8)
            if (*(unsigned long *)at == mangled) return (long *)at;
    }
    abort();
}
static __attribute__((noinline)) void registered(void)
{
    atexit(nothing);
    memset(kept(nothing), 'r', 8); // pointer-registered
    exit(0);
}

/* Buffers of setjmp. */
static void jump(const char *way)
{
    static struct { char name[16]; jmp_buf buffer; } data;
    struct { char name[16]; jmp_buf buffer; } local;
    use(&local);
    if (!strcmp(way, "jump-static")) {
        if (setjmp(data.buffer)) return;
        memcpy(data.name, text, 16 + 64); // jump-static
        longjmp(data.buffer, 1);
    }
    if (setjmp(local.buffer)) return;
    memset(local.name, 'j', 16 + 64); // jump-local
    longjmp(local.buffer, 1);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int ends[2];
    fake[1] = (long)won;
    if (!strcmp(way, "return-store")) by_store();
    if (!strcmp(way, "return-index")) by_index();
    if (!strcmp(way, "return-memcpy")) by_memcpy(text, 48);
    if (!strcmp(way, "return-strcpy")) by_strcpy("0123456789abcdef01234567ABCDEF");
    if (!strcmp(way, "return-memset")) by_memset(40);
    if (!strcmp(way, "return-read")) {
        if (pipe(ends) || write(ends[1], text, 48) != 48) return 1;
        by_read(ends[0], 48);
    }
    if (!strcmp(way, "return-byte")) by_byte();
    if (!strcmp(way, "return-caller")) with_caller();
    if (!strcmp(way, "return-loop")) loops(40);
    if (!strcmp(way, "return-snprintf")) by_snprintf();
    if (!strcmp(way, "return-nowhere")) nowhere();
    if (!strcmp(way, "return-noncanonical")) no_address();
    if (!strcmp(way, "frame-store")) return goes_on(frame_by_store);
    if (!strcmp(way, "frame-memcpy")) return goes_on(frame_by_memcpy);
    if (!strcmp(way, "frame-pivot")) leaves(frame_pivot);
    if (!strcmp(way, "pointer-linked")) linked();
    if (!strcmp(way, "pointer-end")) at_end();
    if (!strcmp(way, "pointer-registered")) registered();
    if (!strncmp(way, "pointer-", 8) && strcmp(way, "pointer-table")) pointer(way);
    if (!strcmp(way, "pointer-table")) vtable();
    if (!strncmp(way, "jump-", 5)) jump(way);
    return 3;
}
