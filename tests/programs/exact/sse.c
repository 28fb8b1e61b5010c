/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * SSE2 to SSE4 with intrinsics: shuffles, saturation, string comparison, unaligned loads. */
#pragma GCC target("sse4.2,aes,pclmul")
#include "start.h"
#include <immintrin.h>

static const char text[64] = "a man a plan a canal panama, said the palindrome to the vowels";

int main(void) {
    __m128i sum = _mm_setzero_si128(), key = _mm_set1_epi8(0x5a);
    int found = 0;
    for (int i = 0; i + 16 <= 60; i += 3) {
        __m128i part = _mm_loadu_si128((const __m128i *)(text + i));
        sum = _mm_adds_epu8(sum, _mm_shuffle_epi8(part, _mm_set1_epi64x(0x0001020304050607)));
        sum = _mm_aesenc_si128(sum, key);
        sum = _mm_xor_si128(sum, _mm_clmulepi64_si128(part, key, 0x10));
        found += _mm_cmpistri(_mm_setr_epi8('a', 'e', 'i', 'o', 'u', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
                              part, _SIDD_CMP_EQUAL_ANY);
        found += _mm_popcnt_u32(_mm_movemask_epi8(_mm_cmpeq_epi8(part, _mm_set1_epi8('a'))));
    }
    return (found + _mm_extract_epi8(sum, 3) + _mm_cvtsi128_si32(_mm_sad_epu8(sum, key))) & 127;
}
