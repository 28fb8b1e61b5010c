// Keeps making new code for as long as asked: functions of random shape at ever new addresses, run a
// few times, checked against an interpreter, then unmapped or overwritten. A cache of translations that
// forgets nothing grows without bound here.
#include "../programs/check.h"
#include <sys/mman.h>
#include <time.h>

enum { OPERATIONS = 40, REGIONS = 256, PAGE = 4096 };
static uint64_t state = 88172645463325252ull;
static uint64_t next(void) { state ^= state << 13, state ^= state >> 7, state ^= state << 17; return state; }

struct step { int kind; int32_t value; };

/* Emits rax = f(rdi) with conditional jumps between the steps, so that each makes several blocks. */
static size_t emit(unsigned char *at, const struct step *steps)
{
    unsigned char *p = at;
#define BYTES(text) (memcpy(p, text, sizeof text - 1), p += sizeof text - 1)
#define IMMEDIATE(v) (memcpy(p, &(int32_t){v}, 4), p += 4)
    BYTES("\x48\x89\xf8");                                                /* mov rax, rdi */
    for (int i = 0; i < OPERATIONS; i++) {
        switch (steps[i].kind) {
        case 0: BYTES("\x48\x05"), IMMEDIATE(steps[i].value); break;      /* add rax, imm */
        case 1: BYTES("\x48\x35"), IMMEDIATE(steps[i].value); break;      /* xor rax, imm */
        case 2: BYTES("\x48\x69\xc0"), IMMEDIATE(steps[i].value); break;  /* imul rax, rax, imm */
        case 3:                                                           /* if odd: add rax, imm */
            BYTES("\xa8\x01\x74\x06\x48\x05"), IMMEDIATE(steps[i].value);
            break;
        default: BYTES("\x48\xc1\xc0\x0d"); break;                        /* rol rax, 13 */
        }
    }
    *p++ = 0xc3;
    return (size_t)(p - at);
}

static uint64_t interpret(uint64_t x, const struct step *steps)
{
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t value = (uint64_t)(int64_t)steps[i].value;
        switch (steps[i].kind) {
        case 0: x += value; break;
        case 1: x ^= value; break;
        case 2: x *= value; break;
        case 3: if (x & 1) x += value; break;
        default: x = x << 13 | x >> 51; break;
        }
    }
    return x;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    static unsigned char *region[REGIONS];
    uint64_t made = 0;
    do {
        for (int turn = 0; turn < 50; turn++, made++) {
            struct step steps[OPERATIONS];
            for (int i = 0; i < OPERATIONS; i++) steps[i] = (struct step){(int)(next() % 5), (int32_t)next()};
            unsigned slot = next() % REGIONS;
            int fresh = !region[slot] || next() % 2;
            if (fresh) {
                if (region[slot]) MUST(munmap(region[slot], PAGE));
                void *hint = (void *)(0x100000000000 + (next() % (1ull << 32)) * PAGE);
                region[slot] = mmap(hint, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                CHECK(region[slot] != MAP_FAILED);
            }
            unsigned char *at = region[slot] + next() % 8 * 448;
            CHECK(emit(at, steps) < 448);
            uint64_t x = next();
            for (int i = 0; i < 3; i++, x = next())
                CHECK(((uint64_t(*)(uint64_t))(void *)at)(x) == interpret(x, steps));
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) * 1e-9 < seconds);
    fprintf(stderr, "%lu functions\n", made);
    return ok();
}
