// build: -O1 -fno-fast-math -lm
// build: -O2 -mfpmath=387 -lm
// build: -O3 -mavx2 -mfma -ffp-contract=off -lm
// Floating point to the last bit: x87, SSE or AVX sums, libm, rounding modes, denormals, exception
// flags, MXCSR and control word kept across system calls and signals.
#include "check.h"
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <xmmintrin.h>
static volatile sig_atomic_t inside;
static void handler(int s) { (void)s; inside = (int)_mm_getcsr(); _mm_setcsr(0x1f80); }
int main(void)
{
    volatile double seed = 1.0;
    double x = seed, sum = 0;
    long double extended = 0;
    float narrow = 0;
    for (int i = 1; i < 3000; i++) {
        x = sin(x) * 3.7 + cos(i * 0.01) + sqrt(i) - log(i + 0.5) * exp(-i * 0.001);
        sum += x / i + fmod(x, 0.3) + pow(fabs(x), 0.3) + atan2(x, i) + cbrt(x);
        extended += sinl(x) * tanl(0.1L * i / 3000) + expl(-x * x);
        narrow = narrow * 0.99f + sinf((float)x) + (float)i / 7.0f;
    }
    printf("%a %La %a\n", sum, extended, narrow);
    int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    for (int i = 0; i < 4; i++) {
        fesetround(modes[i]);
        volatile double third = seed / 3, wide = 1e308 * seed;
        volatile float f = (float)third;
        printf("%a %a %ld %La\n", third, (double)f, lrint(seed * 2.5), (long double)wide / 3);
    }
    fesetround(FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
    volatile double tiny = 5e-324 * seed, huge = 1e308 * seed;
    volatile double r = tiny / 2 + huge * 10 + 1 / (seed - 1) + sqrt(-seed);
    (void)r;
    printf("flags %x\n", fetestexcept(FE_ALL_EXCEPT));
    _mm_setcsr(0x9fc0 | 0x6000);                     /* flush to zero, toward zero */
    uint16_t control = 0x0c7f, seen;
    __asm__ volatile("fldcw %0" ::"m"(control));
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    getppid();
    __asm__ volatile("fnstcw %0" : "=m"(seen));
    printf("mxcsr %x in the handler %x control %x\n", _mm_getcsr() & 0xffc0, (unsigned)inside & 0xffc0, seen);
    return ok();
}
