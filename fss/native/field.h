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

/* The sum of a vector's words, each at most p + 7. */
INLINE uint64_t total(V x)
{
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) sum = fold_word(sum + x[i]);
    return sum;
}
