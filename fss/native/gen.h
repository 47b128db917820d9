/* Key generation: both parties walk down the path to alpha, a stripe of keys at a time. fss/path.py and fss/dcf.py say
 * why; the names are theirs. Alpha's bits and the control bits act as masks.
 */
#include <stdlib.h>

struct batch {
    const struct gen_job *job;
    uint64_t (*words)[ROW]; /* what both keys share */
    _Alignas(64) uint64_t alpha[ROW], beta[ROW], lo[2][ROW], hi[2][ROW];
    _Alignas(64) uint64_t ends[4][ROW];
};

/* Where a stripe's path has come to. */
struct path {
    V lo[2][STRIPE], hi[2][STRIPE], v_alpha[STRIPE];
    struct seeds seeds[2];
};

INLINE void prepare(struct path *path)
{
    for (int b = 0; b < 2; b++)
        UNROLL for (int i = 0; i < STRIPE; i++) sigma(&path->seeds[b], i, path->lo[b][i], path->hi[b][i]);
}

/* Lines 10 to 12: the value correction, and what the path has collected. */
INLINE void correct_value(const struct batch *batch, struct path *path, int level, size_t k)
{
    const struct shape *shape = &batch->job->shape;
    V v[2][2][STRIPE];
    for (int b = 0; b < 2; b++) hash(&path->seeds[b], batch->job->schedule->round[VALUE], v[b][0], v[b][1]);
    for (int i = 0; i < STRIPE; i++) {
        size_t j = k + i * WORDS;
        V right = mask_of(load(batch->alpha + j) << (64 - shape->bits + level)), beta = load(batch->beta + j);
        V sign = path->seeds[1].t[i] & P, v_alpha = path->v_alpha[i];
        V lose0 = blend(right, v[0][0][i], v[0][1][i]) & P, keep0 = blend(right, v[0][1][i], v[0][0][i]) & P;
        V lose1 = blend(right, v[1][0][i], v[1][1][i]) & P, keep1 = blend(right, v[1][1][i], v[1][0][i]) & P;
        V v_cw = canonical(lose1 + (lose0 ^ P) + (v_alpha ^ P) + (beta & ~right));
        path->v_alpha[i] = canonical(v_alpha + (keep1 ^ P) + keep0 + v_cw);
        store(batch->words[level_word(shape, level) + 2] + j, canonical(v_cw ^ sign));
    }
}

/* Lines 4 to 9 and 13 to 14: the seed correction, and the step to the child on the path. */
INLINE void descend(const struct batch *batch, struct path *path, int level, size_t k)
{
    const struct shape *shape = &batch->job->shape;
    uint64_t(*cw)[ROW] = batch->words + level_word(shape, level);
    V child[2][2][2][STRIPE]; /* of party b, to this side: lo and hi */
    for (int b = 0; b < 2; b++)
        for (int side = 0; side < 2; side++)
            hash(&path->seeds[b], batch->job->schedule->round[side], child[b][side][0], child[b][side][1]);
    for (int i = 0; i < STRIPE; i++) {
        size_t j = k + i * WORDS;
        V right = mask_of(load(batch->alpha + j) << (64 - shape->bits + level));
        V left_lo = child[0][0][0][i] ^ child[1][0][0][i], left_hi = child[0][0][1][i] ^ child[1][0][1][i];
        V right_lo = child[0][1][0][i] ^ child[1][1][0][i], right_hi = child[0][1][1][i] ^ child[1][1][1][i];
        V turn_left = ~(left_lo ^ right) & TOP_BIT, turn_right = (right_lo ^ right) & TOP_BIT;
        V cw_lo = (blend(right, left_lo, right_lo) & ~TOP_BIT) | turn_left, cw_hi = blend(right, left_hi, right_hi);
        V apart = turn_left ^ turn_right;
        store(cw[0] + j, cw_lo);
        store(cw[1] + j, cw_hi);
        store(batch->words[CONTROL] + j, load(batch->words[CONTROL] + j) | apart >> (63 - level));
        cw_lo ^= apart & right;
        for (int b = 0; b < 2; b++) {
            V t = path->seeds[b].t[i];
            path->lo[b][i] = blend(right, child[b][1][0][i], child[b][0][0][i]) ^ (t & cw_lo);
            path->hi[b][i] = blend(right, child[b][1][1][i], child[b][0][1][i]) ^ (t & cw_hi);
        }
    }
}

/* Line 17, once for each leaf of the terminal node. A DPF gains beta at alpha's own leaf, a DCF from there on. */
INLINE void correct_leaves(const struct batch *batch, const struct path *path, int pair, size_t k)
{
    const struct shape *shape = &batch->job->shape;
    int word = level_word(shape, depth(shape)) + 2 * pair;
    V v[2][2][STRIPE];
    for (int b = 0; b < 2; b++) hash(&path->seeds[b], batch->job->schedule->round[pair], v[b][0], v[b][1]);
    for (int i = 0; i < STRIPE; i++)
        for (int half = 0; half < 2; half++) {
            size_t j = k + i * WORDS;
            V end = load(batch->alpha + j) & (uint64_t)(leaves(shape) - 1), sign = path->seeds[1].t[i] & P;
            V here = (V)((SignedV)end == 2 * pair + half), before = (V)((SignedV)end < 2 * pair + half);
            V gained = load(batch->beta + j) & (here | (before & -(uint64_t)shape->has_values));
            V v_cw = (v[1][half][i] & P) + ((v[0][half][i] & P) ^ P) + (path->v_alpha[i] ^ P) + gained;
            store(batch->words[word + half] + j, canonical(canonical(v_cw) ^ sign));
        }
}

LOOP void gen_stripe(struct batch *batch, size_t k)
{
    const struct shape *shape = &batch->job->shape;
    struct path path;
    for (int i = 0; i < STRIPE; i++) {
        path.v_alpha[i] = (V){0};
        for (int b = 0; b < 2; b++) {
            path.lo[b][i] = load(batch->lo[b] + k + i * WORDS);
            path.hi[b][i] = load(batch->hi[b] + k + i * WORDS);
        }
    }
    for (int level = 0; level < depth(shape); level++) {
        prepare(&path);
        if (shape->has_values) correct_value(batch, &path, level, k);
        descend(batch, &path, level, k);
    }
    prepare(&path);
    for (int pair = 0; 2 * pair < leaves(shape); pair++) correct_leaves(batch, &path, pair, k);
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < STRIPE; i++) {
            store(batch->ends[2 * b] + k + i * WORDS, path.lo[b][i]);
            store(batch->ends[2 * b + 1] + k + i * WORDS, path.hi[b][i]);
        }
}

static void read_keys(struct batch *batch, size_t first, size_t count)
{
    const struct gen_job *job = batch->job;
    memcpy(batch->alpha, job->alphas + 8 * first, 8 * count);
    memcpy(batch->beta, job->beta + 8 * first, 8 * count);
    for (size_t k = 0; k < count; k++) {
        uint64_t rand[4];
        memcpy(rand, job->rand + 32 * (first + k), sizeof rand);
        for (int b = 0; b < 2; b++) { /* t_b^(0) = b, in the top bit of the seed */
            batch->lo[b][k] = (rand[2 * b] & ~TOP_BIT) | (uint64_t)b << 63;
            batch->hi[b][k] = rand[2 * b + 1];
        }
    }
    memset(batch->words[CONTROL], 0, sizeof *batch->words);
}

static void write_keys(const struct batch *batch, size_t first, size_t count)
{
    for (int b = 0; b < 2; b++)
        for (int w = 0; w < key_words(&batch->job->shape); w++) {
            const struct rows *to = &batch->job->words[b];
            const uint64_t *from = w == ROOT_LO ? batch->lo[b] : w == ROOT_HI ? batch->hi[b] : batch->words[w];
            memcpy(to->start + w * to->stride + 8 * first, from, 8 * count);
        }
    for (int row = 0; batch->job->ends.start && row < 4; row++)
        memcpy(batch->job->ends.start + row * batch->job->ends.stride + 8 * first, batch->ends[row], 8 * count);
}

static int gen(const struct gen_job *job)
{
    struct batch batch = {.job = job};
    batch.words = aligned_alloc(64, key_words(&job->shape) * sizeof *batch.words);
    if (!batch.words) return -1;
    for (size_t first = 0; first < job->keys; first += GROUP) {
        size_t count = job->keys - first < GROUP ? job->keys - first : GROUP;
        read_keys(&batch, first, count);
        for (size_t k = 0; k < count; k += STRIPE_KEYS) gen_stripe(&batch, k);
        write_keys(&batch, first, count);
    }
    free(batch.words);
    return 0;
}
