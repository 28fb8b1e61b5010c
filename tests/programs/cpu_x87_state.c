// build: -O1 -mno-red-zone
// The whole vector and x87 state survives signals, system calls and thread switches: eight x87
// registers, sixteen ymm registers, MMX, flags, while a timer interrupts all the time.
#include "check.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
static volatile sig_atomic_t ticks;
static void handler(int s)
{
    (void)s;
    ticks++;
    __asm__ volatile("vzeroall; fninit; fldpi; fldz; emms; std; cld; stc" ::: "memory", "cc", "xmm0", "xmm1", "xmm2",
                     "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
                     "xmm13", "xmm14", "xmm15");
}
static uint8_t in[512] __attribute__((aligned(32))), out[512] __attribute__((aligned(32)));
static uint8_t x87[108], x87_after[108];
int main(void)
{
    if (!__builtin_cpu_supports("avx2")) return ok();
    for (int i = 0; i < 512; i++) in[i] = (uint8_t)(i * 37 + 11);
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &act, NULL);
    struct itimerval every = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, NULL);
    while (ticks < 60) {
        long count = 20000, wanted = SYS_getppid, before, after;
        memset(out, 0, sizeof out);
        __asm__ volatile(
            "vmovdqa (%[in]), %%ymm0\n vmovdqa 32(%[in]), %%ymm1\n vmovdqa 64(%[in]), %%ymm2\n"
            "vmovdqa 96(%[in]), %%ymm3\n vmovdqa 128(%[in]), %%ymm4\n vmovdqa 160(%[in]), %%ymm5\n"
            "vmovdqa 192(%[in]), %%ymm6\n vmovdqa 224(%[in]), %%ymm7\n vmovdqa 256(%[in]), %%ymm8\n"
            "vmovdqa 288(%[in]), %%ymm9\n vmovdqa 320(%[in]), %%ymm10\n vmovdqa 352(%[in]), %%ymm11\n"
            "vmovdqa 384(%[in]), %%ymm12\n vmovdqa 416(%[in]), %%ymm13\n vmovdqa 448(%[in]), %%ymm14\n"
            "vmovdqa 480(%[in]), %%ymm15\n"
            "fninit\n fld1\n fldpi\n fldl2e\n fldl2t\n fldlg2\n fldln2\n fldz\n fnsave %[x87]\n frstor %[x87]\n"
            "stc\n pushf\n pop %[before]\n push %[before]\n popf\n"
            "1: lea -1(%%rcx), %%rcx\n mov %%rcx, %%r8\n jrcxz 3f\n pushf\n test $1023, %%ecx\n jnz 2f\n"
            "mov %[wanted], %%rax\n syscall\n mov %%r8, %%rcx\n 2: popf\n jmp 1b\n3:\n"
            "pushf\n pop %[after]\n fnsave %[x87_after]\n"
            "vmovdqa %%ymm0, (%[out])\n vmovdqa %%ymm1, 32(%[out])\n vmovdqa %%ymm2, 64(%[out])\n"
            "vmovdqa %%ymm3, 96(%[out])\n vmovdqa %%ymm4, 128(%[out])\n vmovdqa %%ymm5, 160(%[out])\n"
            "vmovdqa %%ymm6, 192(%[out])\n vmovdqa %%ymm7, 224(%[out])\n vmovdqa %%ymm8, 256(%[out])\n"
            "vmovdqa %%ymm9, 288(%[out])\n vmovdqa %%ymm10, 320(%[out])\n vmovdqa %%ymm11, 352(%[out])\n"
            "vmovdqa %%ymm12, 384(%[out])\n vmovdqa %%ymm13, 416(%[out])\n vmovdqa %%ymm14, 448(%[out])\n"
            "vmovdqa %%ymm15, 480(%[out])\n vzeroupper\n"
            : [before] "=&r"(before), [after] "=&r"(after), "+c"(count), [x87] "=m"(x87), [x87_after] "=m"(x87_after)
            : [in] "r"(in), [out] "r"(out), [wanted] "r"(wanted)
            : "rax", "r8", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
              "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
        CHECK(memcmp(in, out, sizeof in) == 0);
        CHECK((before & 0xcd5) == (after & 0xcd5));
        CHECK(memcmp(x87 + 28, x87_after + 28, 80) == 0);
    }
    struct itimerval stop = {0};
    setitimer(ITIMER_REAL, &stop, NULL);
    return ok();
}
