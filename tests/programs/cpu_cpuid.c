// build: -O1
// CPUID is consistent: what is hidden by the engine (AVX-512, AMX, PKU, RTM, RDRAND, RDPID) may be
// missing but what the machine has up to AVX2 stays, XGETBV agrees with leaf 0Dh, and code that
// follows the bits runs. Prints only what must be equal natively and under the engine.
#include "check.h"
#include <cpuid.h>
#include <x86intrin.h>
static unsigned a, b, c, d;
static void leaf(unsigned n, unsigned sub) { __cpuid_count(n, sub, a, b, c, d); }
__attribute__((target("avx2"))) static int avx2(void)
{
    __m256i x = _mm256_set1_epi32(21);
    return _mm256_extract_epi32(_mm256_add_epi32(x, x), 7);
}
__attribute__((target("avx512f"))) static int avx512(void)
{
    __m512i x = _mm512_set1_epi32(21);
    return _mm512_reduce_add_epi32(x) == 21 * 16 ? 1 : 0;
}
int main(void)
{
    leaf(0, 0);
    unsigned most = a;
    char vendor[13] = {0};
    memcpy(vendor, &b, 4), memcpy(vendor + 4, &d, 4), memcpy(vendor + 8, &c, 4);
    printf("vendor %s\n", vendor);
    CHECK(most >= 7);
    leaf(1, 0);
    printf("family %x features: sse4.2 %d popcnt %d aes %d avx %d fma %d f16c %d cx16 %d movbe %d\n", a & 0xfff0ff0,
           c >> 20 & 1, c >> 23 & 1, c >> 25 & 1, c >> 28 & 1, c >> 12 & 1, c >> 29 & 1, c >> 13 & 1, c >> 22 & 1);
    int osxsave = c >> 27 & 1;
    CHECK((d & 0x07808111) == 0x07808111);                        /* the x86-64 baseline */
    leaf(7, 0);
    printf("leaf 7: bmi1 %d avx2 %d bmi2 %d erms %d sha %d\n", b >> 3 & 1, b >> 5 & 1, b >> 8 & 1, b >> 9 & 1, b >> 29 & 1);
    int has_avx2 = b >> 5 & 1, has_512 = b >> 16 & 1;
    if (osxsave) {
        unsigned low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        CHECK((low & 3) == 3);
        leaf(13, 0);
        CHECK(!(low & ~a) && high == 0);                          /* enabled within supported */
        CHECK(b >= 576 && b <= c);
        if (!(low & 0xe0)) CHECK(!has_512);
        if (!has_512) CHECK(!(low & 0xe0) || has_512);
        if (has_avx2) {
            CHECK((low & 6) == 6);
            leaf(13, 2);
            CHECK(a == 256 && b == 576);
        }
    }
    if (has_avx2) CHECK(avx2() == 42);
    if (has_512) CHECK(avx512());
    CHECK(__builtin_cpu_supports("sse2"));
    leaf(0x80000000, 0);
    CHECK(a >= 0x80000004);
    char brand[49] = {0};
    for (unsigned i = 0; i < 3; i++) {
        leaf(0x80000002 + i, 0);
        memcpy(brand + 16 * i, &a, 4), memcpy(brand + 16 * i + 4, &b, 4);
        memcpy(brand + 16 * i + 8, &c, 4), memcpy(brand + 16 * i + 12, &d, 4);
    }
    printf("brand %s\n", brand);
    leaf(0x80000001, 0);
    printf("lahf %d lzcnt %d syscall %d long %d\n", c & 1, c >> 5 & 1, d >> 11 & 1, d >> 29 & 1);
    return ok();
}
