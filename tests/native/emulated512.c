/* The widest vectors with instructions that more processors have: what is left untested of vaes512.c is that its
 * intrinsics do to four blocks what these do to each. */
#ifdef __x86_64__
#include <immintrin.h>
#include <stdint.h>

#define TARGET "aes,sse4.2"
#define BLOCKS_PER_VECTOR 4

typedef uint64_t Wide __attribute__((vector_size(64)));

#define ON_BLOCKS(name, operation) \
    static inline __attribute__((always_inline, target(TARGET))) Wide name(Wide a, Wide b) \
    { \
        __m128i x[4], y[4]; \
        __builtin_memcpy(x, &a, 64); \
        __builtin_memcpy(y, &b, 64); \
        for (int i = 0; i < 4; i++) x[i] = operation(x[i], y[i]); \
        __builtin_memcpy(&a, x, 64); \
        return a; \
    }
ON_BLOCKS(enc, _mm_aesenc_si128)
ON_BLOCKS(enc_last, _mm_aesenclast_si128)
ON_BLOCKS(unpack_lo, _mm_unpacklo_epi64)
ON_BLOCKS(unpack_hi, _mm_unpackhi_epi64)
ON_BLOCKS(mul_32, _mm_mul_epu32)

static inline __attribute__((always_inline, target(TARGET))) Wide swap(Wide a)
{
    __m128i x[4];
    __builtin_memcpy(x, &a, 64);
    for (int i = 0; i < 4; i++) x[i] = _mm_shuffle_epi32(x[i], 0x4e);
    __builtin_memcpy(&a, x, 64);
    return a;
}

static inline __attribute__((always_inline, target(TARGET))) Wide four_times(__m128i x)
{
    __m128i four[4] = {x, x, x, x};
    Wide all;
    __builtin_memcpy(&all, four, 64);
    return all;
}

#define AESENC enc
#define AESENCLAST enc_last
#define UNPACKLO unpack_lo
#define UNPACKHI unpack_hi
#define MUL32 mul_32
#define SWAP swap
#define BROADCAST four_times

#include "loops.h"

const struct set fss_emulated512 = SET("emulated512");
#endif
