/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * AVX and AVX2: a matrix product with FMA, permutations across lanes, masked loads, VZEROUPPER
 * and mixing with legacy SSE. */
#pragma GCC target("avx2,fma,bmi2")
#include "start.h"
#include <immintrin.h>

static float a[16][16] __attribute__((aligned(32))), b[16][16] __attribute__((aligned(32)));
static float product[16][16] __attribute__((aligned(32)));

int main(void) {
    for (int i = 0; i < 256; i++) a[i / 16][i % 16] = i % 7, b[i / 16][i % 16] = i % 5 - 2;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++) {
            __m256 factor = _mm256_set1_ps(a[i][k]);
            for (int j = 0; j < 16; j += 8) {
                __m256 sum = _mm256_load_ps(&product[i][j]);
                sum = _mm256_fmadd_ps(factor, _mm256_load_ps(&b[k][j]), sum);
                _mm256_store_ps(&product[i][j], sum);
            }
        }
    __m256i mask = _mm256_setr_epi32(-1, 0, -1, 0, 0, -1, 0, -1);
    __m256 some = _mm256_maskload_ps(&product[3][5], mask);
    some = _mm256_permutevar8x32_ps(some, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
    __m128 half = _mm_add_ps(_mm256_extractf128_ps(some, 1), _mm256_castps256_ps128(some));
    _mm256_zeroupper();
    half = _mm_hadd_ps(half, half);
    return (int)(_mm_cvtss_f32(half) + product[7][9]) & 127;
}
