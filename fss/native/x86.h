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
#define SWAP(a) ((V)_mm_shuffle_epi32((__m128i)(a), 0x4e))
#define BROADCAST(x) ((V)(x))
#elif BLOCKS_PER_VECTOR == 2
#define AESENC(x, k) ((V)_mm256_aesenc_epi128((__m256i)(x), (__m256i)(k)))
#define AESENCLAST(x, k) ((V)_mm256_aesenclast_epi128((__m256i)(x), (__m256i)(k)))
#define UNPACKLO(a, b) ((V)_mm256_unpacklo_epi64((__m256i)(a), (__m256i)(b)))
#define UNPACKHI(a, b) ((V)_mm256_unpackhi_epi64((__m256i)(a), (__m256i)(b)))
#define MUL32(a, b) ((V)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define SWAP(a) ((V)_mm256_shuffle_epi32((__m256i)(a), 0x4e))
#define BROADCAST(x) ((V)_mm256_broadcastsi128_si256(x))
#else
#define AESENC(x, k) ((V)_mm512_aesenc_epi128((__m512i)(x), (__m512i)(k)))
#define AESENCLAST(x, k) ((V)_mm512_aesenclast_epi128((__m512i)(x), (__m512i)(k)))
#define UNPACKLO(a, b) ((V)_mm512_unpacklo_epi64((__m512i)(a), (__m512i)(b)))
#define UNPACKHI(a, b) ((V)_mm512_unpackhi_epi64((__m512i)(a), (__m512i)(b)))
#define MUL32(a, b) ((V)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#define SWAP(a) ((V)_mm512_shuffle_epi32((__m512i)(a), 0x4e))
#define BROADCAST(x) ((V)_mm512_broadcast_i32x4(x))
/* One instruction adds, or xors, where a bit of a mask register is set. */
#define MASK __mmask8
#define MASK_OF(x) _mm512_cmplt_epi64_mask((__m512i)(x), _mm512_setzero_si512())
#define ADD_WHERE(mask, a, b) ((V)_mm512_mask_add_epi64((__m512i)(a), mask, (__m512i)(a), (__m512i)(b)))
#define XOR_WHERE(mask, a, b) ((V)_mm512_mask_xor_epi64((__m512i)(a), mask, (__m512i)(a), (__m512i)(b)))
#endif

/* The same block in all places. */
INLINE V same_block(const uint64_t *from) { return BROADCAST(_mm_loadu_si128((const __m128i *)from)); }

/* Round r of AES, 0 being the key that is added before the first. */
INLINE void aes_round(V *x, int count, const uint8_t round[ROUND_KEYS][16], int r)
{
    V key = BROADCAST(_mm_load_si128((const __m128i *)round[r]));
    UNROLL for (int i = 0; i < count; i++)
        x[i] = r == 0 ? x[i] ^ key : r < ROUND_KEYS - 1 ? AESENC(x[i], key) : AESENCLAST(x[i], key);
}

INLINE void aes(V *x, int count, const uint8_t round[ROUND_KEYS][16])
{
    UNROLL for (int r = 0; r < ROUND_KEYS; r++) aes_round(x, count, round, r);
}
