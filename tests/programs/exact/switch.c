/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * Switch tables: a small byte-code interpreter, one indirect jump an operation. */
#include "start.h"

enum { PUSH, ADD, MULTIPLY, SUBTRACT, DUPLICATE, SWAP, JUMP_IF, OVER, DROP, STOP };
static const unsigned char program[] = {PUSH, 40, PUSH, 1, OVER, MULTIPLY, PUSH, 3, ADD, SWAP, PUSH,
                                        1, SUBTRACT, SWAP, OVER, JUMP_IF, 4, STOP};

__attribute__((noinline)) static unsigned run(const unsigned char *code) {
    unsigned stack[16] = {0};
    int top = 0, pc = 0;
    for (;;) {
        switch (code[pc++]) {
        case PUSH: stack[++top] = code[pc++]; break;
        case ADD: top--, stack[top] += stack[top + 1]; break;
        case MULTIPLY: top--, stack[top] *= stack[top + 1]; break;
        case SUBTRACT: top--, stack[top] -= stack[top + 1]; break;
        case DUPLICATE: stack[top + 1] = stack[top], top++; break;
        case SWAP: stack[0] = stack[top], stack[top] = stack[top - 1], stack[top - 1] = stack[0]; break;
        case JUMP_IF: pc = stack[top--] ? code[pc] : pc + 1; break;
        case OVER: stack[top + 1] = stack[top - 1], top++; break;
        case DROP: top--; break;
        default: return stack[top];
        }
    }
}

int main(void) {
    return run(program) & 127;
}
