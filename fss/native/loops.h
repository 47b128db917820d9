/* All loops, for one instruction set: TARGET (where the compiler must be told) and BLOCKS_PER_VECTOR say which. */
#include "vector.h"
#include "field.h"
#include "eval.h"
#include "gen.h"

LOOP void make_canonical(uint64_t *words, size_t count)
{
    size_t i = 0;
    for (; i + WORDS <= count; i += WORDS) store(words + i, canonical(load(words + i)));
    for (; i < count; i++) words[i] = canonical_word(fold_word(words[i]));
}

/* For benchmarks: what the processor can do, if nothing else had to be done. */
LOOP uint64_t hash_alone(const struct schedule *schedule, size_t stripes)
{
    struct seeds seeds;
    V sum = {0}, first[STRIPE], second[STRIPE];
    UNROLL for (int i = 0; i < STRIPE; i++) sigma(&seeds, i, sum + i, sum + 1);
    for (size_t n = 0; n < stripes; n++) {
        hash(&seeds, schedule->round[n % HASHES], first, second);
        UNROLL for (int i = 0; i < STRIPE; i++) sum += first[i] ^ second[i];
    }
    return sum[0];
}

enum { HASHED_BLOCKS = STRIPE_KEYS };

#define SET(name) {name, gen, eval, make_canonical, hash_alone, HASHED_BLOCKS}
