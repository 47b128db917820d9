/* What the boundary (module.c) and the loops (loops.h) agree on.
 *
 * The loops are written once, for vectors of any width, and compiled once for each instruction set; `struct set` is one
 * result of that. Keys are laid out as fss/keys.py says: row w holds word w of all keys.
 */
#ifndef FSS_KERNEL_H
#define FSS_KERNEL_H

#if !defined(__GNUC__) || !(defined(__x86_64__) || (defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__))
#error "this kernel is for x86-64 and AArch64 and a compiler with GNU vector extensions; fss uses numpy elsewhere"
#endif

#include <stddef.h>
#include <stdint.h>

enum { MAX_BITS = 32, MAX_LEAF_BITS = 4, MAX_LEAVES = 1 << MAX_LEAF_BITS, PAIRS = MAX_LEAVES / 2, ROUND_KEYS = 11 };

/* The first hashes give the values of pairs of leaves too, and some give nothing else. */
enum { LEFT, RIGHT, VALUE, CHECK_0 = PAIRS, CHECK_1, HASHES };
enum { ROOT_LO, ROOT_HI, CONTROL, FIRST_LEVEL };

/* Elements that a terminal node's state is hashed to for its check, words of its weights (Weights.by_node), and rows of
 * `seen` above those of the leaves. */
enum { CHECKS = 4, WEIGHTS = CHECKS + 2, SEEN_ROWS = 2 };

/* Words of a proof besides one for each leaf, and the randomness it is made of (fss/proof.py). */
enum { PROOF_WORDS = CHECKS + 2, PROOF_RAND = 3 + MAX_LEAVES };

/* Keys that are made together, a page of every row: rows may lie far apart, and writing to less than a page of each of a
 * hundred of them in turn took longer than making the keys. Rows on their way lie a line further apart than a page, or
 * all would fall into the same few lines of the cache. */
enum { GROUP = 512, ROW = GROUP + 8 };

/* Blocks that are hashed to time it: a whole number of stripes of every width. */
enum { HASHED = 32 };

#define P ((UINT64_C(1) << 61) - 1)
#define LOW_31 ((UINT64_C(1) << 31) - 1)
#define TOP_BIT (UINT64_C(1) << 63)

/* AES round keys of the hashes. They follow from a campaign's public nonce and are no secret, but for those of a table's
 * seed, which is hashed under the first. */
struct schedule {
    _Alignas(64) uint8_t round[HASHES][ROUND_KEYS][16];
};

struct shape {
    int has_values; /* DCF: a value correction on every level */
    int bits;
};

/* An array whose rows are contiguous and may lie anywhere. */
struct rows {
    char *start;
    ptrdiff_t stride;
};

struct gen_job {
    struct shape shape;
    const struct schedule *schedule;
    size_t keys;
    const char *alphas, *rand, *beta; /* 8, 32 and 8 bytes a key */
    struct rows words[2];
    struct rows ends; /* if not NULL, where the paths end: lo and hi of both parties */
};

/* Proofs of keys that were just made, from where their paths ended. `constants` are 1 / Z(0), then for each j from 1 on and
 * each leaf i the fixed part of q(j), if alpha is leaf i (fss/proof.py). */
struct prove_job {
    struct shape shape;
    const struct schedule *schedule;
    size_t keys;
    const char *alphas, *rand; /* 8 and 8 PROOF_RAND bytes a key */
    struct rows ends;
    const uint64_t *constants;
    struct rows words[2];
};

/* Answers at `points`, sorted and distinct, or, if that is NULL, at every point of the domain. They go to `sums`
 * (added, at most p + 7 each) or, if that is NULL, to row i of `each` for point i (canonical).
 *
 * With `weights`, WEIGHTS words for each terminal node, sums over the whole domain also write what the check of
 * each key needs to `seen`: SEEN_ROWS rows, and one for each leaf of a node. */
struct eval_job {
    struct shape shape;
    const struct schedule *schedule;
    size_t keys;
    struct rows words;
    const uint64_t *points;
    uint64_t answers;
    uint64_t *sums;
    struct rows each;
    const uint64_t *weights;
    struct rows seen;
};

struct set {
    const char *name;
    /* These return 0, or -1 if there is no memory. */
    int (*gen)(const struct gen_job *);
    int (*prove)(const struct prove_job *);
    int (*eval)(const struct eval_job *);
    void (*make_canonical)(uint64_t *words, size_t count);
    /* The sum of all words of the hashes of HASHED seeds, under one key after the other, so many times: to time it. */
    uint64_t (*hash_alone)(const struct schedule *, const uint64_t lo[HASHED], const uint64_t hi[HASHED], size_t times);
    /* Tables (table.h); `words` may lie anywhere. The schedule's first key is that of a seed, and secret. */
    void (*table_expand)(const struct schedule *, const uint64_t seed[2], uint64_t first, uint64_t *out, size_t count);
    void (*table_dot)(const char *words, const uint64_t *weights, size_t count, uint64_t sums[2]);
    void (*table_add)(const char *words, uint64_t factor, uint64_t *sums, size_t count);
};

extern const struct set fss_aesni, fss_vaes256, fss_vaes512, fss_neon;

/* Those that this processor has, best first; how many. */
enum { MAX_SETS = 3 };
int fss_sets(const struct set *sets[MAX_SETS]);

void fss_schedule(struct schedule *schedule, const uint8_t keys[HASHES][16]);

static inline int leaf_bits(const struct shape *s) { return s->bits < MAX_LEAF_BITS ? s->bits : MAX_LEAF_BITS; }
static inline int depth(const struct shape *s) { return s->bits - leaf_bits(s); }
static inline int leaves(const struct shape *s) { return 1 << leaf_bits(s); }
static inline int level_word(const struct shape *s, int level) { return FIRST_LEVEL + level * (2 + s->has_values); }
static inline int key_words(const struct shape *s) { return level_word(s, depth(s)) + leaves(s); }

#endif
