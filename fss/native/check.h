/* What the check of a key needs of its evaluation over the whole domain: fss/observe.py says what, and why.
 *
 * Every lane has a column of running sums, which each terminal node adds to, from left to right. With 2^61 = 1, and x cut
 * into 31 low and 30 high bits, a weight into 30 low and 31 high ones (Weights.limbs; the low ones also doubled),
 *
 *     w x = (w_low x_low + w_high x_high) + 2^30 (w_high x_low + 2 w_low x_high).
 *
 * All are blocks: LOW and MIDDLE have the hashes h_0 and h_2 in their first words, h_1 and h_3 in the second ones; CONTROLS
 * the control bits' weights and how many bits are set; PREVIOUS the share at the point before; LEAVES and what follows the
 * pairs of leaves, without their corrections, which count as often as control bits are set.
 */
enum { LOW, MIDDLE, CONTROLS, PREVIOUS, LEAVES, RUNNING = LEAVES + PAIRS };

/* Blocks of weights: the low, the high, the doubled ones, and the control bit's. */
enum { W_LOW, W_HIGH = CHECKS / 2, W_DOUBLE = CHECKS, W_CONTROL = 3 * CHECKS / 2 };

/* What is running is at most p + 7, and takes six additions of at most p before it must be folded. */
enum { FOLD_RUNNING_EVERY = 6 };

/* Rows of each lane's own weights, where lanes are at different nodes, and then of what is seen. */
enum { PLANES = SEEN_ROWS + MAX_LEAVES };
_Static_assert((int)PLANES >= WEIGHTS, "a lane's weights must fit");
_Static_assert((int)PLANES >= SEEN_ROWS + MAX_LEAVES, "what is seen must fit");

/* A lot at a terminal node. Plain values: the compiler need not fear that storing a sum changes them. */
struct checked {
    uint64_t *running; /* block r of lane k is at r PART + 2 k */
    const uint64_t *weights;
    int has_values, must_fold, own_weights;
};

INLINE V weight(struct checked c, int i, size_t at)
{
    return c.own_weights ? load(c.weights + i * PART + at) : same_block(c.weights + 2 * i);
}

INLINE void run_on(struct checked c, int row, size_t at, V add, int must_fold)
{
    uint64_t *running = c.running + row * PART + at;
    V sum = load(running) + add;
    store(running, must_fold ? fold(sum) : sum);
}

/* Adds to `low` and to `middle`, for x of at most p + 7. Nothing overflows in two calls, nor with what is running: four
 * products of at most 2^61 in `low`, two of less than 2^62 and two of at most 2^61 in the middle, and p + 7. */
INLINE void weigh(struct checked c, int i, size_t at, V x, V *low, V *middle)
{
    V w_high = weight(c, W_HIGH + i, at), x_low = x & LOW_31, x_high = x >> 31;
    *middle += MUL32(x_low, w_high) + MUL32(x_high, weight(c, W_DOUBLE + i, at));
    *low += MUL32(x_low, weight(c, W_LOW + i, at)) + MUL32(x_high, w_high);
}

/* A DCF's first hash has the step into the node added: from the share at the point before, which is replaced by the one
 * at the node's last leaf, both at most 3p + 7. */
INLINE V with_step(struct checked c, size_t at, V hashed, V first, V last)
{
    const V none = {0}, first_words = UNPACKLO(~none, none);
    uint64_t *previous = c.running + PREVIOUS * PART + at;
    V step = first + (4 * P - load(previous));
    store(previous, SWAP(last));
    return fold(hashed + (step & first_words));
}

INLINE void check_hashes(struct checked c, const struct lot *lot, const struct schedule *schedule, size_t k,
                         const V first[LOT], const V last[LOT])
{
    V x[LOT], low[LOT], middle[LOT];
    hash_lot(lot, schedule->round[CHECK_0], x);
    UNROLL for (int i = 0; i < LOT; i++) {
        size_t at = 2 * k + i * WORDS;
        V hashed = x[i] & P;
        low[i] = middle[i] = (V){0};
        if (c.has_values) hashed = with_step(c, at, hashed, first[i], last[i]);
        weigh(c, 0, at, hashed, low + i, middle + i);
        uint64_t *controls = c.running + CONTROLS * PART + at;
        V counted = ADD_WHERE(lot->t[i], load(controls), weight(c, W_CONTROL, at));
        store(controls, c.must_fold ? fold(counted) : counted);
    }
    hash_lot(lot, schedule->round[CHECK_1], x);
    UNROLL for (int i = 0; i < LOT; i++) {
        size_t at = 2 * k + i * WORDS;
        weigh(c, 1, at, x[i] & P, low + i, middle + i);
        run_on(c, MIDDLE, at, middle[i], 1);
        run_on(c, LOW, at, low[i], 1);
    }
}

/* Two leaves of each lane, at most 2p, before what was collected is added, and to the running sums without corrections. */
INLINE void check_pair(struct checked c, struct leaf_parts parts, const struct lot *lot, int pair, size_t k, V x[LOT])
{
    const uint64_t *cw = parts.cw + pair * PART;
    hash_lot(lot, parts.schedule->round[pair], x);
    UNROLL for (int i = 0; i < LOT; i++) {
        size_t at = 2 * k + i * WORDS;
        V hashed = x[i] & load(parts.live + at);
        run_on(c, LEAVES + pair, at, hashed, c.must_fold);
        x[i] = ADD_WHERE(lot->t[i], hashed, load(cw + at));
    }
}

/* Where leaves go: in sum over the group or, where lanes have weights of their own, each lane's to `each`. */
struct leaf_target {
    V totals[PAIRS];
    uint64_t *each;
};

INLINE void put_pair(struct leaf_target *target, int own_weights, int pair, size_t k, const V x[LOT], const V v[LOT])
{
    if (!own_weights) {
        target->totals[pair] = counted_lot(target->totals[pair], lot_sum(x), k);
        return;
    }
    uint64_t *to = target->each + k * MAX_LEAVES + 2 * pair;
    UNROLL for (int i = 0; i < LOT; i++) store_pair(to + i * BLOCKS_PER_VECTOR * MAX_LEAVES, fold(x[i] + v[i]));
}

/* What the check adds up at a node, and its leaves. All but `pairs` of a small domain are constants. */
INLINE void check_node(const struct group *g, struct node at, const uint64_t *weights, uint64_t sums[MAX_LEAVES],
                       int has_values, int must_fold, int pairs, int own_weights)
{
    const struct checked c = {g->running, weights, has_values, must_fold, own_weights};
    const struct leaf_parts parts = leaf_parts(g);
    const size_t count = g->count;
    const V none = {0};
    struct leaf_target target = {.each = g->each};
    uint64_t both[2] = {0};
    V collected = none;
    UNROLL for (int pair = 0; pair < PAIRS; pair++) target.totals[pair] = none;
    for (size_t k = 0; k < count; k += LOT_LANES) {
        struct lot lot;
        V v[LOT], x[LOT], first[LOT], last[LOT];
        load_lot(&lot, at.lo + 2 * k);
        UNROLL for (int i = 0; i < LOT; i++) v[i] = has_values ? load(at.collected + 2 * k + i * WORDS) : none;
        if (has_values && !own_weights) collected = counted_lot(collected, lot_sum(v), k);
        check_pair(c, parts, &lot, 0, k, x);
        UNROLL for (int i = 0; i < LOT; i++) first[i] = x[i] + v[i];
        put_pair(&target, own_weights, 0, k, x, v);
        /* Rolled: unrolled variants were slower when timed beside it. */
        ROLLED for (int pair = 1; pair < pairs; pair++) {
            check_pair(c, parts, &lot, pair, k, x);
            put_pair(&target, own_weights, pair, k, x, v);
        }
        UNROLL for (int i = 0; i < LOT; i++) last[i] = x[i] + v[i];
        check_hashes(c, &lot, parts.schedule, k, first, last);
    }
    if (own_weights) return;
    if (has_values) add_blocks(fold(collected), both);
    UNROLL for (int pair = 0; pair < PAIRS; pair++) target.totals[pair] = fold(target.totals[pair]);
    add_pairs(target.totals, sums);
    for (int i = 0; i < MAX_LEAVES; i += WORDS) store(sums + i, fold(load(sums + i) + both[0]));
}

LOOP void check_leaves(const struct group *g, const struct node *at, uint64_t number, uint64_t sums[MAX_LEAVES])
{
    int must_fold = number % FOLD_RUNNING_EVERY == FOLD_RUNNING_EVERY - 1, has_values = g->job->shape.has_values;
    int pairs = leaves(&g->job->shape) / 2;
    const uint64_t *weights = g->job->weights + number * WEIGHTS;
    if (pairs < PAIRS) check_node(g, *at, weights, sums, has_values, 1, pairs, 0);
    else if (has_values && must_fold) check_node(g, *at, weights, sums, 1, 1, PAIRS, 0);
    else if (has_values) check_node(g, *at, weights, sums, 1, 0, PAIRS, 0);
    else if (must_fold) check_node(g, *at, weights, sums, 0, 1, PAIRS, 0);
    else check_node(g, *at, weights, sums, 0, 0, PAIRS, 0);
}

/* The weights of the first terminal node below one that lanes walk from. */
static const uint64_t *first_weights(const struct group *g, size_t node)
{
    return g->job->weights + (g->place[node] << (depth(&g->job->shape) - g->top)) * WEIGHTS;
}

/* The same where lanes are at the terminal nodes of this number below their own; the leaves go to `each`. */
LOOP void check_lanes(const struct group *g, const struct node *at, uint64_t number)
{
    uint64_t *to = g->planes;
    for (size_t node = 0; node < (size_t)1 << g->top; node++) {
        const uint64_t *from = first_weights(g, node) + number * WEIGHTS;
        for (size_t k = 0; k < g->keys; k++, to += 2)
            for (int i = 0; i < WEIGHTS / 2; i++) memcpy(to + i * PART, from + 2 * i, 16);
    }
    if (g->job->shape.has_values) check_node(g, *at, g->planes, NULL, 1, 1, PAIRS, 1);
    else check_node(g, *at, g->planes, NULL, 0, 1, PAIRS, 1);
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
        const uint64_t *at = g->running + 2 * lane, *low = at + LOW * PART, *middle = at + MIDDLE * PART;
        uint64_t high = canonical_word(fold_word(middle[0] + middle[1]));
        uint64_t rotated = (high & LOW_31) << 30 | high >> 31, row[PLANES];
        row[0] = fold_word(low[0] + low[1]) + rotated;
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
        const uint64_t *weights = first_weights(g, node);
        uint64_t weight = weights[0] + (weights[CHECKS] << 30);
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
