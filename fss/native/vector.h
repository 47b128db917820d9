/* Vectors of 64-bit words, as wide as BLOCKS_PER_VECTOR AES blocks, and the hash on them.
 *
 * Seeds are held as planes: vectors of `lo` words and of `hi` words. Unpacking two planes puts their words side by side
 * as AES blocks, in an order that unpacking the results undoes. A stripe is four vectors of each plane, hence eight
 * independent AES vectors, which is what hides the latency of an AES instruction.
 */
#include <immintrin.h>
#include <string.h>

#include "kernel.h"

#define INLINE static inline __attribute__((always_inline, target(TARGET)))
#define LOOP static __attribute__((target(TARGET)))
#define UNROLL _Pragma("GCC unroll 8")
#define ROLLED _Pragma("GCC unroll 1")

typedef uint64_t V __attribute__((vector_size(16 * BLOCKS_PER_VECTOR)));
typedef int64_t SignedV __attribute__((vector_size(16 * BLOCKS_PER_VECTOR)));

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

enum { WORDS = 2 * BLOCKS_PER_VECTOR, STRIPE = 4, STRIPE_KEYS = STRIPE * WORDS };

INLINE V load(const void *from)
{
    V x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void store(uint64_t *to, V x) { memcpy(to, &x, sizeof x); }

/* All ones where the top bit is set. */
INLINE V mask_of(V x) { return (V)((SignedV)x < 0); }

INLINE V blend(V mask, V where_set, V where_clear) { return where_clear ^ (mask & (where_set ^ where_clear)); }

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

/* A stripe of seeds: sigma's two words, and the control bit as a mask. */
struct seeds {
    V s0[STRIPE], s1[STRIPE], t[STRIPE];
};

INLINE V sigma(struct seeds *s, int i, V lo, V hi)
{
    s->s0[i] = hi;
    s->s1[i] = hi ^ lo;
    return s->t[i] = mask_of(lo);
}

/* H(s) = AES(sigma(s)) xor sigma(s), the two words of each block apart. */
INLINE void hash(const struct seeds *s, const uint8_t round[ROUND_KEYS][16], V first[STRIPE], V second[STRIPE])
{
    V x[2 * STRIPE];
    UNROLL for (int i = 0; i < STRIPE; i++) {
        x[2 * i] = UNPACKLO(s->s0[i], s->s1[i]);
        x[2 * i + 1] = UNPACKHI(s->s0[i], s->s1[i]);
    }
    aes(x, round);
    UNROLL for (int i = 0; i < STRIPE; i++) {
        first[i] = UNPACKLO(x[2 * i], x[2 * i + 1]) ^ s->s0[i];
        second[i] = UNPACKHI(x[2 * i], x[2 * i + 1]) ^ s->s1[i];
    }
}
