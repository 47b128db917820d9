/* Z_p with p = 2^61 - 1, as fss/field.py: sums run lazily in the three spare bits. */

/* At most p + 7, from any word. */
INLINE V fold(V x) { return (x & P) + (x >> 61); }

/* In [0, p), from any word. */
INLINE V canonical(V x)
{
    V folded = fold(x);
    return folded - (P & (V)((SignedV)folded >= (int64_t)P));
}

static inline uint64_t fold_word(uint64_t x) { return (x & P) + (x >> 61); }

/* From at most p + 7. A mask, not a comparison: that the compiler would be free to make a branch of. */
static inline uint64_t canonical_word(uint64_t x)
{
    uint64_t less = x - P;
    return less + (P & -(less >> 63));
}

typedef unsigned __int128 wide;

/* At most p + 7, from 128 bits: 2^122 = 1 too. */
static inline uint64_t fold_wide(wide x)
{
    return fold_word(((uint64_t)x & P) + ((uint64_t)(x >> 61) & P) + (uint64_t)(x >> 122));
}

/* At most p + 7, for two of at most p + 7. */
static inline uint64_t mul_words(uint64_t a, uint64_t b)
{
    wide product = (wide)a * b;
    return fold_word(((uint64_t)product & P) + (uint64_t)(product >> 61));
}

/* At most p + 7, for words of at most p + 7: with 31 low and 30 or 31 high bits, 2^62 = 2 and what is between turned. */
INLINE V mul(V a, V b)
{
    V a_low = a & LOW_31, a_high = a >> 31, b_low = b & LOW_31, b_high = b >> 31;
    V middle = MUL32(a_low, b_high) + MUL32(a_high, b_low), high = MUL32(a_high, b_high);
    return fold(MUL32(a_low, b_low) + ((middle & (LOW_31 >> 1)) << 31) + (middle >> 30) + 2 * high);
}

/* Of the blocks of a vector, the sum of their first words and that of their second ones: at most p + 7, from as much. */
INLINE void add_blocks(V x, uint64_t sums[2])
{
    uint64_t words[WORDS];
    store(words, x);
    sums[0] = sums[1] = 0;
    for (int i = 0; i < WORDS; i++) sums[i % 2] += words[i];
    for (int i = 0; i < 2; i++) sums[i] = fold_word(sums[i]);
}

/* The same for all pairs of leaves, but at most 4p + 28. */
INLINE void add_pairs(const V x[PAIRS], uint64_t sums[MAX_LEAVES])
{
#if BLOCKS_PER_VECTOR == 4
    for (int i = 0; i < PAIRS; i += 4) {
        V y[2];
        for (int j = 0; j < 2; j++) {
            V a = x[i + 2 * j], b = x[i + 2 * j + 1];
            y[j] = SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
        }
        store(sums + 2 * i, SHUFFLE(y[0], y[1], 0, 1, 4, 5, 8, 9, 12, 13) + SHUFFLE(y[0], y[1], 2, 3, 6, 7, 10, 11, 14, 15));
    }
#elif BLOCKS_PER_VECTOR == 2
    for (int i = 0; i < PAIRS; i += 2)
        store(sums + 2 * i, SHUFFLE(x[i], x[i + 1], 0, 1, 4, 5) + SHUFFLE(x[i], x[i + 1], 2, 3, 6, 7));
#else
    for (int i = 0; i < PAIRS; i++) store(sums + 2 * i, x[i]);
#endif
}

/* The sum of a vector's words, each at most p + 7. */
INLINE uint64_t total(V x)
{
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) sum = fold_word(sum + x[i]);
    return sum;
}
