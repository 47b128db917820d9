/* What the check of a key needs of its evaluation over the whole domain: fss/observe.py says what, and why.
 *
 * Every lane has a column of running sums, which each terminal node adds to, from left to right. All are blocks: WEIGHED is
 * the sum of weighed hashes (weigh.h); CONTROLS the control bits' weights and how many bits are set; PREVIOUS the share at
 * the point before; LEAVES and what follows the pairs of leaves, without their corrections, which count as often as control
 * bits are set.
 */
#include "weigh.h"

enum { WEIGHED, CONTROLS, PREVIOUS, LEAVES, RUNNING = LEAVES + PAIRS };

/* What is running is at most p + 7, and takes seven additions of at most p, up to 2^64 - 1, before it must be folded; what
 * is weighed takes fifteen, up to 2^128 - 1. */
enum { FOLD_RUNNING_EVERY = 7 };

/* Rows of what is seen; before that, the first two are the blocks of each lane's control bit, if lanes are at different
 * nodes. */
enum { PLANES = SEEN_ROWS + MAX_LEAVES };

/* Half a lot at a terminal node. The flags are constants where this is made. */
struct checked {
    struct lot lot;
    struct weights weights;
    uint64_t *running; /* block r of lane k of the lot is at r PART + 2 k */
    size_t at;         /* where in a row of PART words it begins */
    int has_values, must_fold, pair;
    const uint64_t *cw, *live, *collected;
    V leaf[HALF], first[HALF], hash[2][HALF]; /* AES, then what follows from it */
    uint64_t *words[2]; /* of both hashes, for the integer unit */
    V sum, *totals; /* in sum over the group or, where lanes have weights of their own, */
    uint64_t *each; /* each lane's leaves */
};

INLINE void run_on(struct checked *c, int row, int i, V add, int must_fold)
{
    uint64_t *running = c->running + row * PART + i * WORDS;
    V sum = load(running) + add;
    store(running, must_fold ? fold(sum) : sum);
}

INLINE V collected_by(const struct checked *c, int i)
{
    const V none = {0};
    return c->has_values ? load(c->collected + i * WORDS) : none;
}

/* Two leaves, at most 2p, before what was collected is added, and to the running sums without corrections. */
INLINE void check_pair(void *with, int i)
{
    struct checked *c = with;
    V hashed = (c->leaf[i] ^ c->lot.sigma[i]) & load(c->live + i * WORDS);
    run_on(c, LEAVES + c->pair, i, hashed, c->must_fold);
    c->leaf[i] = ADD_WHERE(c->lot.t[i], hashed, load(c->cw + c->pair * PART + i * WORDS));
    if (c->weights.own)
        store(c->each + (i * PAIRS + c->pair) * WORDS, c->leaf[i] + collected_by(c, i));
    else
        count_vector(c->totals + c->pair, &c->sum, c->leaf[i], i, c->at / 2);
}

/* The first hash, and the control bits. A DCF's has the step into the node added: from the share at the point before to
 * that at the first leaf, both at most 3p + 7. */
INLINE void check_first_hash(void *with, int i)
{
    struct checked *c = with;
    const V none = {0};
    V hashed = (c->hash[0][i] ^ c->lot.sigma[i]) & P;
    if (c->has_values) {
        V step = c->first[i] + collected_by(c, i) + (4 * P - load(c->running + PREVIOUS * PART + i * WORDS));
        hashed = ADD_WHERE(MASK_OF(UNPACKLO(~none, none)), hashed, step);
    }
    c->hash[0][i] = hashed;
    uint64_t *controls = c->running + CONTROLS * PART + i * WORDS;
    V counted = ADD_WHERE(c->lot.t[i], load(controls), control_weight(c->weights, c->at + i * WORDS));
    store(controls, c->must_fold ? fold(counted) : counted);
}

INLINE void spill_hashes(void *with, int i)
{
    struct checked *c = with;
    spill(c->words[0] + i * WORDS, c->hash[0][i]);
    spill(c->words[1] + i * WORDS, (c->hash[1][i] ^ c->lot.sigma[i]) & P);
}

INLINE void weigh_lane(struct checked *c, int lane)
{
    const uint64_t *weights = hash_weights(c->weights, c->at / 2 + lane);
    weigh(weights, c->words[0] + 2 * lane, c->words[1] + 2 * lane, c->running + WEIGHED * PART + 2 * lane, c->must_fold);
}

/* Lanes that are weighed beside the hash of one pair. A processor takes instructions in their order, a few in each cycle:
 * all products at once would keep it from the next AES instructions, so they are beside all pairs from the third on. */
enum { LANES_BESIDE = (HALF_LANES + PAIRS - 3) / (PAIRS - 2) };

INLINE void weigh_some(void *with, int i)
{
    struct checked *c = with;
    int lane = (c->pair - 1) * LANES_BESIDE + i;
    if (i < LANES_BESIDE && lane < HALF_LANES) weigh_lane(c, lane);
}

/* All of a lot at a node. What one hash leaves to be done is done beside the next one (aes_beside). */
INLINE void check_lot(struct checked *c, const struct schedule *schedule, int pairs)
{
    V next[HALF];
    aes_lot(&c->lot, schedule->round[0], c->leaf, HALF);
    aes_beside(&c->lot, schedule->round[CHECK_0], c->hash[0], HALF, check_pair, NULL, c);
    UNROLL for (int i = 0; i < HALF; i++) c->first[i] = c->leaf[i];
    aes_beside(&c->lot, schedule->round[CHECK_1], c->hash[1], HALF, check_first_hash, NULL, c);
    if (pairs > 1) {
        aes_beside(&c->lot, schedule->round[1], c->leaf, HALF, spill_hashes, NULL, c);
        ROLLED for (c->pair = 1; c->pair < pairs - 1; c->pair++) {
            aes_beside(&c->lot, schedule->round[c->pair + 1], next, HALF, check_pair, weigh_some, c);
            UNROLL for (int i = 0; i < HALF; i++) c->leaf[i] = next[i];
        }
        UNROLL for (int i = 0; i < HALF; i++) check_pair(c, i);
    } else
        UNROLL for (int i = 0; i < HALF; i++) spill_hashes(c, i);
    if (pairs < PAIRS)
        for (int lane = LANES_BESIDE * (pairs > 2 ? pairs - 2 : 0); lane < HALF_LANES; lane++) weigh_lane(c, lane);
    if (c->has_values)
        UNROLL for (int i = 0; i < HALF; i++)
            store(c->running + PREVIOUS * PART + i * WORDS, SWAP(c->leaf[i] + collected_by(c, i)));
}

/* What the check adds up at a node, and its leaves. All but `pairs` of a small domain are constants. */
INLINE void check_node(const struct group *g, struct node at, struct weights weights, uint64_t sums[MAX_LEAVES],
                       int has_values, int must_fold, int pairs)
{
    const struct leaf_parts parts = leaf_parts(g);
    const size_t count = g->count;
    uint64_t *running = g->running, *each = g->each, both[2] = {0};
    _Alignas(64) uint64_t words[2 * HALF * WORDS];
    V totals[PAIRS], collected = {0}, sum;
    UNROLL for (int pair = 0; pair < PAIRS; pair++) totals[pair] = (V){0};
    for (size_t k = 0; k < count; k += HALF_LANES) {
        struct checked c = {.weights = weights, .running = running + 2 * k, .at = 2 * k, .has_values = has_values};
        c.must_fold = must_fold, c.pair = 0, c.cw = parts.cw + 2 * k, c.live = parts.live + 2 * k;
        c.collected = at.collected + 2 * k, c.totals = totals, c.each = each + k * MAX_LEAVES;
        c.words[0] = words, c.words[1] = words + HALF * WORDS;
        load_vectors(&c.lot, at.lo + 2 * k, HALF);
        if (has_values && !weights.own)
            UNROLL for (int i = 0; i < HALF; i++) count_vector(&collected, &sum, load(c.collected + i * WORDS), i, k);
        check_lot(&c, parts.schedule, pairs);
    }
    if (weights.own) return;
    if (has_values) add_blocks(fold(collected), both);
    finish_totals(totals, both[0], sums);
}

LOOP void check_leaves(const struct group *g, const struct node *at, uint64_t number, uint64_t sums[MAX_LEAVES])
{
    int must_fold = number % FOLD_RUNNING_EVERY == FOLD_RUNNING_EVERY - 1, has_values = g->job->shape.has_values;
    int pairs = leaves(&g->job->shape) / 2;
    const struct weights weights = {.node = g->job->weights + number * WEIGHTS};
    if (pairs < PAIRS) check_node(g, *at, weights, sums, has_values, 1, pairs);
    else if (has_values && must_fold) check_node(g, *at, weights, sums, 1, 1, PAIRS);
    else if (has_values) check_node(g, *at, weights, sums, 1, 0, PAIRS);
    else if (must_fold) check_node(g, *at, weights, sums, 0, 1, PAIRS);
    else check_node(g, *at, weights, sums, 0, 0, PAIRS);
}

/* The weights of the first terminal node below one that lanes walk from. */
static const uint64_t *first_weights(const struct group *g, size_t node)
{
    return g->job->weights + (g->place[node] << (depth(&g->job->shape) - g->top)) * WEIGHTS;
}

static void start_check(struct group *g)
{
    memset(g->running, 0, 8 * RUNNING * PART);
    for (size_t lane = 0; g->top && lane < SMALL_GROUP; lane++)
        g->weights[lane] = first_weights(g, lane < g->count ? lane / g->keys : 0);
}

/* The same where lanes are at the terminal nodes of this number below their own; the leaves go to `each`. */
LOOP void check_lanes(const struct group *g, const struct node *at, uint64_t number)
{
    const struct weights own = {.own = 1, .lanes = g->weights, .further = number * WEIGHTS, .controls = g->planes};
    for (size_t lane = 0; lane < g->count; lane++)
        memcpy(g->planes + 2 * lane, hash_weights(own, lane) + W_CONTROL, 16);
    if (g->job->shape.has_values) check_node(g, *at, own, NULL, 1, 1, PAIRS);
    else check_node(g, *at, own, NULL, 0, 1, PAIRS);
}

/* The sum of a lane's leaves of this number, less what was collected. */
static uint64_t leaf_sum(const struct group *g, size_t lane, int leaf)
{
    const uint64_t *at = g->running + 2 * lane, *cw = leaf_part(g, leaf / 2) + 2 * lane;
    uint64_t hashed = fold_word(at[(LEAVES + leaf / 2) * PART + leaf % 2]);
    return fold_word(hashed + mul_words(at[CONTROLS * PART + 1], cw[leaf % 2]));
}

/* The step at a leaf, summed over the nodes. What was collected on the way is in none of these steps but the one into a
 * node, whose sum is that of the first leaves less the last ones, but for the very last. */
static uint64_t step_sum(const struct group *g, size_t lane, int leaf)
{
    uint64_t here = leaf_sum(g, lane, leaf);
    if (!g->job->shape.has_values) return here;
    int before = leaf ? leaf - 1 : leaves(&g->job->shape) - 1;
    uint64_t step = here + (2 * P - leaf_sum(g, lane, before)), *last = g->running + PREVIOUS * PART + 2 * lane;
    return leaf ? step : step + fold_word(*last);
}

/* The rows of `seen` for each lane, canonical: the weighed hashes, the control bits, the steps at the leaves. */
static void see_lanes(const struct group *g, int rows)
{
    for (size_t lane = 0; lane < g->count; lane++) {
        const uint64_t *at = g->running + 2 * lane;
        uint64_t row[PLANES];
        row[0] = fold_wide(load_wide(at + WEIGHED * PART));
        row[1] = at[CONTROLS * PART];
        for (int leaf = 0; leaf < rows - SEEN_ROWS; leaf++) row[SEEN_ROWS + leaf] = step_sum(g, lane, leaf);
        for (int r = 0; r < rows; r++) g->planes[r * SMALL_GROUP + lane] = canonical_word(fold_word(row[r]));
    }
}

/* A lane's first step was taken from 0, not from the last share of the lane to the left: take that from both rows. */
static void join_steps(const struct group *g)
{
    for (size_t place = 1; place < (size_t)1 << g->top; place++) {
        size_t node = g->place[place], left = g->place[place - 1];
        uint64_t weight = *first_weights(g, node);
        for (size_t k = 0; k < g->keys; k++) {
            uint64_t *seen = g->planes + node * g->keys + k, *first_steps = seen + SEEN_ROWS * SMALL_GROUP;
            uint64_t last = fold_word(g->running[PREVIOUS * PART + 2 * (left * g->keys + k)]);
            *seen = fold_word(*seen + 2 * P - mul_words(weight, last));
            *first_steps = fold_word(*first_steps + 2 * P - last);
        }
    }
}

/* Write the group's rows of `seen`: for each key, in sum over its lanes. */
static void write_seen(const struct group *g)
{
    int rows = SEEN_ROWS + leaves(&g->job->shape);
    see_lanes(g, rows);
    if (g->job->shape.has_values && g->top) join_steps(g);
    for (int r = 0; r < rows; r++) {
        uint64_t *of = g->planes + r * SMALL_GROUP;
        for (size_t lane = g->keys; lane < g->count; lane += g->keys)
            for (size_t k = 0; k < g->keys; k++) of[k] = fold_word(of[k] + of[lane + k]);
        for (size_t k = 0; k < g->keys; k++) of[k] = canonical_word(of[k]);
        memcpy(g->job->seen.start + r * g->job->seen.stride + 8 * g->first, of, 8 * g->keys);
    }
}
