/* Vectors of 64-bit words, as wide as BLOCKS_PER_VECTOR AES blocks, and the hash on them.
 *
 * Seeds are held as planes: vectors of `lo` words and of `hi` words. Unpacking two planes puts their words side by side
 * as AES blocks, in an order that unpacking the results undoes. A stripe is four vectors of each plane, hence eight
 * independent AES vectors, which is what hides the latency of an AES instruction.
 */
#include <string.h>

#include "kernel.h"

#ifdef TARGET
#define FOR_TARGET __attribute__((target(TARGET)))
#else
#define FOR_TARGET
#endif
#define INLINE static inline __attribute__((always_inline)) FOR_TARGET
#define LOOP static FOR_TARGET
#define UNROLL _Pragma("GCC unroll 16")
#define ROLLED _Pragma("GCC unroll 1")

typedef uint64_t V __attribute__((vector_size(16 * BLOCKS_PER_VECTOR)));
typedef int64_t SignedV __attribute__((vector_size(16 * BLOCKS_PER_VECTOR)));

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

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (V){__VA_ARGS__})
#endif

#if defined(__x86_64__)
#include "x86.h"
#else
#include "neon.h"
#endif

/* Where no other way is better, masks are vectors. */
#ifndef MASK
#define MASK V
#define MASK_OF mask_of
#define ADD_WHERE(mask, a, b) ((a) + ((mask) & (b)))
#define XOR_WHERE(mask, a, b) ((a) ^ ((mask) & (b)))
#endif

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
    aes(x, 2 * STRIPE, round);
    UNROLL for (int i = 0; i < STRIPE; i++) {
        first[i] = UNPACKLO(x[2 * i], x[2 * i + 1]) ^ s->s0[i];
        second[i] = UNPACKHI(x[2 * i], x[2 * i + 1]) ^ s->s1[i];
    }
}
