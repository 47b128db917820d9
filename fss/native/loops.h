/* All loops, for one instruction set: TARGET (where the compiler must be told) and BLOCKS_PER_VECTOR say which. */
#include "vector.h"
#include "field.h"
#include "eval.h"
#include "gen.h"
#include "proof.h"
#include "table.h"

LOOP void make_canonical(uint64_t *words, size_t count)
{
    size_t i = 0;
    for (; i + WORDS <= count; i += WORDS) store(words + i, canonical(load(words + i)));
    for (; i < count; i++) words[i] = canonical_word(fold_word(words[i]));
}

/* For benchmarks: what the processor can do, if nothing else had to be done. The seeds come from memory and every word of
 * every hash counts, so that the compiler can leave out none of them. */
LOOP uint64_t hash_alone(const struct schedule *schedule, const uint64_t lo[HASHED], const uint64_t hi[HASHED], size_t times)
{
    uint64_t words[WORDS], all = 0;
    V sum = {0};
    for (size_t n = 0; n < times; n++)
        for (size_t k = 0; k < HASHED; k += STRIPE_KEYS) {
            struct seeds seeds;
            V first[STRIPE], second[STRIPE];
            UNROLL for (int i = 0; i < STRIPE; i++) sigma(&seeds, i, load(lo + k + i * WORDS), load(hi + k + i * WORDS));
            hash(&seeds, schedule->round[n % HASHES], first, second);
            UNROLL for (int i = 0; i < STRIPE; i++) sum += first[i] + second[i];
        }
    store(words, sum);
    for (int i = 0; i < WORDS; i++) all += words[i];
    return all;
}

#define SET(name) {name, gen, prove, eval, make_canonical, hash_alone, table_expand, table_dot, table_add}
