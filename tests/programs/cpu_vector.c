// build: -O1
// SSE to AVX2, gathers, masked moves, FMA, BMI1/2, AES, CLMUL, SHA, F16C, movbe, as far as the machine
// has them, with a checksum. Each group asks CPUID first, so it may only differ if CPUID lies.
#include "check.h"
#include <immintrin.h>
static uint64_t sum = 14695981039346656037ull;
static void mix(uint64_t v) { for (int i = 0; i < 8; i++) sum = (sum ^ (v >> (8 * i) & 255)) * 1099511628211ull; }
static void mix128(__m128i v) { uint64_t w[2]; memcpy(w, &v, 16); mix(w[0]), mix(w[1]); }
__attribute__((target("avx"))) static void mix256(__m256i v) { uint64_t w[4]; memcpy(w, &v, 32); for (int i = 0; i < 4; i++) mix(w[i]); }
static uint64_t state = 88172645463325252ull;
static uint64_t next(void) { state ^= state << 13, state ^= state >> 7, state ^= state << 17; return state; }
static __m128i random128(void) { uint64_t w[2] = {next(), next()}; __m128i v; memcpy(&v, w, 16); return v; }
__attribute__((target("avx"))) static __m256i random256(void) { uint64_t w[4] = {next(), next(), next(), next()}; __m256i v; memcpy(&v, w, 32); return v; }
__attribute__((target("sse4.2"))) static void sse(void)
{
    for (int i = 0; i < 500; i++) {
        __m128i a = random128(), b = random128();
        mix128(_mm_add_epi8(a, b)), mix128(_mm_madd_epi16(a, b)), mix128(_mm_sad_epu8(a, b));
        mix128(_mm_shuffle_epi8(a, b)), mix128(_mm_packus_epi16(a, b)), mix128(_mm_mul_epu32(a, b));
        mix128(_mm_minpos_epu16(a)), mix128(_mm_blendv_epi8(a, b, _mm_cmpgt_epi32(a, b)));
        mix((uint64_t)_mm_movemask_epi8(a)), mix((uint64_t)_mm_cmpistri(a, b, _SIDD_CMP_EQUAL_ANY));
        mix128(_mm_cmpestrm(a, i % 17, b, 9, _SIDD_CMP_RANGES | _SIDD_UNIT_MASK));
        mix(_mm_crc32_u64(next(), next())), mix((uint64_t)_mm_testz_si128(a, b));
        mix128(_mm_castps_si128(_mm_cvtepi32_ps(a))), mix128(_mm_castpd_si128(_mm_cvtepi32_pd(b)));
        mix128(_mm_castps_si128(_mm_rcp_ps(_mm_setzero_ps()))), mix128(_mm_alignr_epi8(a, b, 5));
        uint8_t masked[16] = {0};
        _mm_maskmoveu_si128(a, b, (char *)masked);
        for (int k = 0; k < 16; k++) mix(masked[k]);
        uint64_t streamed[2] __attribute__((aligned(16)));
        _mm_stream_si128((__m128i *)streamed, a);
        _mm_sfence();
        mix(streamed[0] ^ streamed[1]);
    }
}
__attribute__((target("avx2,fma"))) static void avx(void)
{
    static int table[1024];
    static double doubles[1024];
    for (int i = 0; i < 1024; i++) table[i] = (int)next(), doubles[i] = (double)(next() >> 20);
    for (int i = 0; i < 500; i++) {
        __m256i a = random256(), b = random256(), index = _mm256_and_si256(a, _mm256_set1_epi32(1023));
        mix256(_mm256_i32gather_epi32(table, index, 4));
        mix256(_mm256_mask_i32gather_epi32(a, table, index, b, 4));
        mix256(_mm256_castpd_si256(_mm256_i32gather_pd(doubles, _mm256_castsi256_si128(index), 8)));
        mix256(_mm256_i64gather_epi64((long long *)table, _mm256_and_si256(b, _mm256_set1_epi64x(511)), 8));
        int out[8] = {0};
        _mm256_maskstore_epi32(out, b, a);
        for (int k = 0; k < 8; k++) mix((uint64_t)out[k]);
        mix256(_mm256_maskload_epi32(table + i, b));
        mix256(_mm256_permutevar8x32_epi32(a, b)), mix256(_mm256_sllv_epi32(a, _mm256_and_si256(b, _mm256_set1_epi32(31))));
        mix256(_mm256_permute4x64_epi64(a, 0x1b)), mix256(_mm256_permute2x128_si256(a, b, 0x21));
        mix256(_mm256_broadcastsi128_si256(_mm256_castsi256_si128(b))), mix256(_mm256_mullo_epi32(a, b));
        __m256d x = _mm256_set1_pd((double)i), y = _mm256_loadu_pd(doubles + i), z = _mm256_set1_pd(0.1);
        mix256(_mm256_castpd_si256(_mm256_fmadd_pd(x, y, z)));
        mix256(_mm256_castpd_si256(_mm256_hadd_pd(_mm256_sqrt_pd(y), _mm256_fnmsub_pd(x, y, z))));
        mix256(_mm256_castps_si256(_mm256_round_ps(_mm256_cvtepi32_ps(a), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)));
    }
    _mm256_zeroupper();
}
__attribute__((target("bmi,bmi2,lzcnt,popcnt"))) static void bits(void)
{
    for (int i = 0; i < 2000; i++) {
        uint64_t a = next(), b = next();
        mix(_pdep_u64(a, b)), mix(_pext_u64(a, b)), mix(_bzhi_u64(a, i % 70)), mix(_andn_u64(a, b));
        mix(_blsr_u64(a)), mix(_blsi_u64(a)), mix(_blsmsk_u64(a)), mix(_bextr_u64(a, i % 64, i % 33));
        mix(_tzcnt_u64(a << (i % 64))), mix(_lzcnt_u64(a >> (i % 64))), mix(_tzcnt_u64(0)), mix(_lzcnt_u32(0));
        unsigned long long high;
        mix(_mulx_u64(a, b, &high)), mix(high);
        uint64_t r;
        __asm__("rorx $17, %1, %0" : "=r"(r) : "r"(a));
        mix(r);
        __asm__("shlx %2, %1, %0" : "=r"(r) : "r"(a), "r"(b));
        mix(r);
        __asm__("sarx %2, %1, %0" : "=r"(r) : "m"(a), "r"(b));
        mix(r);
    }
}
__attribute__((target("aes,pclmul"))) static void crypto(void)
{
    __m128i block = random128(), key = random128();
    for (int i = 0; i < 500; i++) {
        block = _mm_aesenc_si128(block, key);
        key = _mm_xor_si128(key, _mm_aeskeygenassist_si128(block, 0x1b));
        block = _mm_xor_si128(_mm_aesdeclast_si128(block, _mm_aesimc_si128(key)), _mm_clmulepi64_si128(key, block, 0x10));
    }
    mix128(block), mix128(key);
}
__attribute__((target("sha"))) static void sha(void)
{
    __m128i a = random128(), b = random128(), c = random128();
    for (int i = 0; i < 500; i++) a = _mm_sha256rnds2_epu32(a, b, c), b = _mm_sha1msg1_epu32(b, a), c = _mm_sha256msg2_epu32(c, b);
    mix128(a), mix128(b), mix128(c);
}
__attribute__((target("f16c,movbe,adx"))) static void others(void)
{
    uint64_t v = next(), r;
    __asm__("movbe %1, %0" : "=r"(r) : "m"(v));
    mix(r);
    __m128 wide = _mm_cvtph_ps(random128());
    mix128(_mm_cvtps_ph(wide, 0));
    unsigned long long out;
    mix(_addcarryx_u64(1, next(), next(), &out)), mix(out);
    __asm__("xor %%eax, %%eax; adcx %1, %0; adox %1, %0" : "+r"(v) : "r"(r) : "rax", "cc");
    mix(v);
}
static void mmx(void)
{
    uint64_t r;
    for (int i = 0; i < 100; i++) {
        uint64_t a = next(), b = next();
        __asm__ volatile("movq %1, %%mm0; movq %2, %%mm1; paddusb %%mm1, %%mm0; pmaddwd %%mm0, %%mm1; punpcklbw %%mm1, %%mm0; movq %%mm0, %0; emms"
                         : "=m"(r) : "m"(a), "m"(b) : "mm0", "mm1");
        mix(r);
    }
}
int main(void)
{
    int has[] = {__builtin_cpu_supports("sse4.2"), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
                 __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("bmi"), __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul")};
    printf("sse4.2 %d avx2 %d bmi %d aes %d\n", !!has[0], !!has[1], !!has[2], !!has[3]);
    mmx();
    if (has[0]) sse();
    printf("sse  %016lx\n", sum);
    if (has[1]) avx();
    printf("avx  %016lx\n", sum);
    if (has[2]) bits();
    printf("bits %016lx\n", sum);
    if (has[3]) crypto();
    printf("aes  %016lx\n", sum);
    unsigned a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(7), "2"(0));
    if (b >> 29 & 1) sha();
    if (has[1] && b >> 19 & 1) others();
    printf("rest %016lx\n", sum);
    return ok();
}
