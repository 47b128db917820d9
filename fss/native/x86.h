/* What vector.h needs of an x86-64 processor with AES: `aes`, and how words are unpacked and multiplied. */
#include <immintrin.h>

#if defined(AESENC)
/* tests/native/emulated512.c brings its own */
#elif BLOCKS_PER_VECTOR == 1
#define AESENC(x, k) ((V)_mm_aesenc_si128((__m128i)(x), (__m128i)(k)))
#define AESENCLAST(x, k) ((V)_mm_aesenclast_si128((__m128i)(x), (__m128i)(k)))
#define UNPACKLO(a, b) ((V)_mm_unpacklo_epi64((__m128i)(a), (__m128i)(b)))
#define UNPACKHI(a, b) ((V)_mm_unpackhi_epi64((__m128i)(a), (__m128i)(b)))
#define MUL32(a, b) ((V)_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#define BROADCAST(x) ((V)(x))
#elif BLOCKS_PER_VECTOR == 2
#define AESENC(x, k) ((V)_mm256_aesenc_epi128((__m256i)(x), (__m256i)(k)))
#define AESENCLAST(x, k) ((V)_mm256_aesenclast_epi128((__m256i)(x), (__m256i)(k)))
#define UNPACKLO(a, b) ((V)_mm256_unpacklo_epi64((__m256i)(a), (__m256i)(b)))
#define UNPACKHI(a, b) ((V)_mm256_unpackhi_epi64((__m256i)(a), (__m256i)(b)))
#define MUL32(a, b) ((V)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define BROADCAST(x) ((V)_mm256_broadcastsi128_si256(x))
#else
#define AESENC(x, k) ((V)_mm512_aesenc_epi128((__m512i)(x), (__m512i)(k)))
#define AESENCLAST(x, k) ((V)_mm512_aesenclast_epi128((__m512i)(x), (__m512i)(k)))
#define UNPACKLO(a, b) ((V)_mm512_unpacklo_epi64((__m512i)(a), (__m512i)(b)))
#define UNPACKHI(a, b) ((V)_mm512_unpackhi_epi64((__m512i)(a), (__m512i)(b)))
#define MUL32(a, b) ((V)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#define BROADCAST(x) ((V)_mm512_broadcast_i32x4(x))
#endif

INLINE void aes(V x[2 * STRIPE], const uint8_t round[ROUND_KEYS][16])
{
    V key = BROADCAST(_mm_load_si128((const __m128i *)round[0]));
    UNROLL for (int i = 0; i < 2 * STRIPE; i++) x[i] ^= key;
    for (int r = 1; r < ROUND_KEYS - 1; r++) {
        key = BROADCAST(_mm_load_si128((const __m128i *)round[r]));
        UNROLL for (int i = 0; i < 2 * STRIPE; i++) x[i] = AESENC(x[i], key);
    }
    key = BROADCAST(_mm_load_si128((const __m128i *)round[ROUND_KEYS - 1]));
    UNROLL for (int i = 0; i < 2 * STRIPE; i++) x[i] = AESENCLAST(x[i], key);
}
