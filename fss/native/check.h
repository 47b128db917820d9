/* What the check of a key needs of its evaluation over the whole domain: fss/observe.py says what, and why.
 *
 * Every key has a column of running sums, which each terminal node adds to, from left to right. With 2^61 = 1, and x cut into
 * 31 low and 30 high bits, a weight into 30 low and 31 high ones (Weights.limbs; the low ones also doubled),
 *
 *     w x = (w_low x_low + w_high x_high) + 2^30 (w_high x_low + 2 w_low x_high).
 */
enum { LOW, MIDDLE, CONTROLS, PREVIOUS, LEAVES, RUNNING = LEAVES + MAX_LEAVES };

/* What is running is at most p + 7, and takes three additions of at most 2p + 14 before it must be folded. */
enum { FOLD_RUNNING_EVERY = 3 };

/* A stripe at a terminal node. Plain values: the compiler need not fear that storing a sum changes them. */
struct stripe {
    uint64_t *running; /* row r of key k is at r SMALL_GROUP + k */
    const uint64_t *weights;
    int has_values, must_fold;
};

INLINE void run_on(struct stripe s, int row, size_t k, V add)
{
    uint64_t *at = s.running + row * SMALL_GROUP + k;
    V sum = load(at) + add;
    store(at, s.must_fold ? fold(sum) : sum);
}

/* Adds to `low` and runs on with the middle, for x of at most p + 7 and y of at most p. No sum overflows: four products
 * of less than 2^61 in `low` for each of two calls, two of less than 2^62 and of less than 2^61 in the middle. */
INLINE V weigh(struct stripe s, size_t k, V x, V y, int first, V low)
{
    const V none = {0};
    const uint64_t *w = s.weights + first, *w_high = w + CHECKS, *w_double = w + 2 * CHECKS;
    V x_low = x & LOW_31, x_high = x >> 31, y_low = y & LOW_31, y_high = y >> 31;
    V middle = MUL32(x_low, none + w_high[0]) + MUL32(x_high, none + w_double[0]);
    middle += MUL32(y_low, none + w_high[1]) + MUL32(y_high, none + w_double[1]);
    run_on(s, MIDDLE, k, fold(middle));
    low += MUL32(x_low, none + w[0]) + MUL32(x_high, none + w_high[0]);
    return low + MUL32(y_low, none + w[1]) + MUL32(y_high, none + w_high[1]);
}

/* A DCF's first hash has the step into the node added: from the share at the point before, which is replaced by the one
 * at the node's last leaf, both at most 3p + 7. */
INLINE V with_step(struct stripe s, size_t k, V hashed, V first, V last)
{
    uint64_t *previous = s.running + PREVIOUS * SMALL_GROUP + k;
    V step = first + (4 * P - load(previous));
    store(previous, last);
    return fold(hashed + step);
}

INLINE void check_hashes(struct stripe s, const struct seeds *seeds, const struct schedule *schedule, size_t k,
                         const V first[STRIPE], const V last[STRIPE])
{
    V x[STRIPE], y[STRIPE], low[STRIPE];
    hash(seeds, schedule->round[CHECK_0], x, y);
    UNROLL for (int i = 0; i < STRIPE; i++) {
        V hashed = x[i] & P;
        if (s.has_values) hashed = with_step(s, k + i * WORDS, hashed, first[i], last[i]);
        low[i] = weigh(s, k + i * WORDS, hashed, y[i] & P, 0, (V){0});
        run_on(s, CONTROLS, k + i * WORDS, seeds->t[i] & s.weights[3 * CHECKS]);
    }
    hash(seeds, schedule->round[CHECK_1], x, y);
    UNROLL for (int i = 0; i < STRIPE; i++) {
        low[i] = weigh(s, k + i * WORDS, x[i] & P, y[i] & P, 2, low[i]);
        run_on(s, LOW, k + i * WORDS, fold(low[i]));
    }
}

/* leaf_sums for all leaves of a node, and what its check adds up. All but `pairs` of a small domain are constants. */
INLINE void check_node(const struct group *g, struct node at, uint64_t number, uint64_t sums[MAX_LEAVES],
                       int has_values, int must_fold, int pairs)
{
    const struct schedule *schedule = g->job->schedule;
    const struct leaf_words words = leaf_words(g);
    const struct stripe s = {g->running, g->job->weights + number * WEIGHTS, has_values, must_fold};
    const size_t count = g->count;
    struct leaf_totals totals;
    clear(&totals);
    for (size_t k = 0; k < count; k += STRIPE_KEYS) {
        struct seeds seeds;
        V v[STRIPE], x[2][STRIPE], first[STRIPE] = {{0}}, last[STRIPE] = {{0}};
        start_leaves(&at, k, &seeds, v, &totals, has_values);
        /* Rolled: unrolled variants were slower when timed beside it. */
        ROLLED for (int pair = 0; pair < pairs; pair++) {
            leaf_pair(words, &seeds, schedule, pair, k, x);
            count_leaves(&totals, pair, k, x);
            UNROLL for (int i = 0; i < STRIPE; i++) {
                run_on(s, LEAVES + 2 * pair, k + i * WORDS, x[0][i]);
                run_on(s, LEAVES + 2 * pair + 1, k + i * WORDS, x[1][i]);
                if (!pair) first[i] = x[0][i] + v[i];
                if (pair == pairs - 1) last[i] = x[1][i] + v[i];
            }
        }
        check_hashes(s, &seeds, schedule, k, first, last);
    }
    finish_leaves(&totals, sums);
}

LOOP void check_leaves(const struct group *g, const struct node *at, uint64_t number, uint64_t sums[MAX_LEAVES])
{
    int must_fold = number % FOLD_RUNNING_EVERY == FOLD_RUNNING_EVERY - 1, has_values = g->job->shape.has_values;
    int pairs = leaves(&g->job->shape) / 2;
    if (pairs < PAIRS) check_node(g, *at, number, sums, has_values, 1, pairs);
    else if (has_values && must_fold) check_node(g, *at, number, sums, 1, 1, PAIRS);
    else if (has_values) check_node(g, *at, number, sums, 1, 0, PAIRS);
    else if (must_fold) check_node(g, *at, number, sums, 0, 1, PAIRS);
    else check_node(g, *at, number, sums, 0, 0, PAIRS);
}

/* The step at a leaf, summed over the nodes. What was collected on the way is in none of these steps but the one into a
 * node, whose sum is that of the first leaves less the last ones, but for the very last. */
INLINE V step_sum(const struct group *g, size_t k, int leaf)
{
    const uint64_t *at = g->running + LEAVES * SMALL_GROUP + k, *last = g->running + PREVIOUS * SMALL_GROUP + k;
    V here = fold(load(at + leaf * SMALL_GROUP));
    if (!g->job->shape.has_values) return here;
    int before = leaf ? leaf - 1 : leaves(&g->job->shape) - 1;
    V step = here + (2 * P - fold(load(at + before * SMALL_GROUP)));
    return leaf ? step : step + fold(load(last));
}

/* The group's rows of `seen`, canonical: the weighed hashes, the control bits, the steps at the leaves. */
LOOP void write_seen(const struct group *g)
{
    V row[SEEN_ROWS + MAX_LEAVES];
    int rows = SEEN_ROWS + leaves(&g->job->shape);
    for (size_t k = 0; k < g->count; k += WORDS) {
        const uint64_t *running = g->running + k;
        V middle = canonical(load(running + MIDDLE * SMALL_GROUP));
        V rotated = ((middle & LOW_31) << 30) | (middle >> 31);
        row[0] = fold(load(running + LOW * SMALL_GROUP)) + rotated;
        row[1] = load(running + CONTROLS * SMALL_GROUP);
        for (int leaf = 0; leaf < rows - SEEN_ROWS; leaf++) row[SEEN_ROWS + leaf] = step_sum(g, k, leaf);
        size_t left = g->count - k, bytes = 8 * (left < WORDS ? left : WORDS);
        for (int r = 0; r < rows; r++) {
            V element = canonical(row[r]);
            memcpy(g->job->seen.start + r * g->job->seen.stride + 8 * (g->first + k), &element, bytes);
        }
    }
}
