// build: -O2 -fno-gcse
// build: -O2 -fno-jump-tables -DSWITCH
// Interpreters: one indirect jump an operation through a table of labels, and as a switch; the
// engine's indirect branches in their hardest common form.
#include "check.h"
enum { PUSH, ADD, MUL, DUP, SWAP, DROP, JNZ, DEC, MOD, HALT };
static long run(const int *code)
{
    long stack[64], *sp = stack;
#ifdef SWITCH
    for (;;)
        switch (*code++) {
        case PUSH: *sp++ = *code++; break;
        case ADD: sp--; sp[-1] += sp[0]; break;
        case MUL: sp--; sp[-1] *= sp[0]; break;
        case DUP: sp[0] = sp[-1]; sp++; break;
        case SWAP: { long t = sp[-1]; sp[-1] = sp[-2]; sp[-2] = t; break; }
        case DROP: sp--; break;
        case JNZ: code += sp[-1] ? *code : 1; break;
        case DEC: sp[-1]--; break;
        case MOD: sp--; sp[-1] %= sp[0]; break;
        case HALT: return sp[-2];
        }
#else
    static void *label[] = {&&push, &&add, &&mul, &&dup, &&swap, &&drop, &&jnz, &&dec, &&mod, &&halt};
#define NEXT goto *label[*code++]
    NEXT;
push: *sp++ = *code++; NEXT;
add: sp--; sp[-1] += sp[0]; NEXT;
mul: sp--; sp[-1] *= sp[0]; NEXT;
dup: sp[0] = sp[-1]; sp++; NEXT;
swap: { long t = sp[-1]; sp[-1] = sp[-2]; sp[-2] = t; NEXT; }
drop: sp--; NEXT;
jnz: code += sp[-1] ? *code : 1; NEXT;
dec: sp[-1]--; NEXT;
mod: sp--; sp[-1] %= sp[0]; NEXT;
halt: return sp[-2];
#endif
}
int main(void)
{
    const int program[] = {PUSH, 1, PUSH, 300000,
                           SWAP, PUSH, 31, MUL, PUSH, 7, ADD, PUSH, 1000003, MOD, DUP, DROP, SWAP,
                           DEC, JNZ, -15, HALT};
    printf("%ld\n", run(program));
    return ok();
}
