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

/* At most p + 7, for two of at most p + 7: 2^122 = 1 too. */
static inline uint64_t mul_words(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return fold_word(((uint64_t)product & P) + (uint64_t)(product >> 61));
}

/* At most p + 7, for words of at most p + 7: with 31 low and 30 or 31 high bits, 2^62 = 2 and what is between turned. */
INLINE V mul(V a, V b)
{
    V a_low = a & LOW_31, a_high = a >> 31, b_low = b & LOW_31, b_high = b >> 31;
    V middle = MUL32(a_low, b_high) + MUL32(a_high, b_low), high = MUL32(a_high, b_high);
    return fold(MUL32(a_low, b_low) + ((middle & (LOW_31 >> 1)) << 31) + (middle >> 30) + 2 * high);
}

/* The sum of a vector's words, each at most p + 7. */
INLINE uint64_t total(V x)
{
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) sum = fold_word(sum + x[i]);
    return sum;
}
