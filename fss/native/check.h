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

/* Rows of each lane's own weights, where lanes are at different nodes, and then of what is seen. */
enum { PLANES = SEEN_ROWS + MAX_LEAVES };
_Static_assert((int)PLANES >= WEIGHTS && (int)PLANES >= SEEN_ROWS + MAX_LEAVES, "a lane's weights and what is seen must fit");

/* A stripe at a terminal node. Plain values: the compiler need not fear that storing a sum changes them. */
struct stripe {
    uint64_t *running; /* row r of lane k is at r SMALL_GROUP + k */
    const uint64_t *weights;
    int has_values, must_fold, own_weights;
};

INLINE V weight(struct stripe s, int i, size_t k)
{
    const V none = {0};
    return s.own_weights ? load(s.weights + i * SMALL_GROUP + k) : none + s.weights[i];
}

INLINE void run_on(struct stripe s, int row, size_t k, V add)
{
    uint64_t *at = s.running + row * SMALL_GROUP + k;
    V sum = load(at) + add;
    store(at, s.must_fold ? fold(sum) : sum);
}

/* Adds to `low` and to `middle`, for x of at most p + 7 and y of at most p. No sum overflows: four products of less than
 * 2^61 in `low` for each of two calls, two of less than 2^62 and of less than 2^61 in the middle, with what was folded. */
INLINE void weigh(struct stripe s, size_t k, V x, V y, int first, V *low, V *middle)
{
    V w = weight(s, first, k), w_high = weight(s, CHECKS + first, k), w_double = weight(s, 2 * CHECKS + first, k);
    V u = weight(s, first + 1, k), u_high = weight(s, CHECKS + first + 1, k);
    V u_double = weight(s, 2 * CHECKS + first + 1, k);
    V x_low = x & LOW_31, x_high = x >> 31, y_low = y & LOW_31, y_high = y >> 31;
    *middle += MUL32(x_low, w_high) + MUL32(x_high, w_double) + MUL32(y_low, u_high) + MUL32(y_high, u_double);
    *low += MUL32(x_low, w) + MUL32(x_high, w_high) + MUL32(y_low, u) + MUL32(y_high, u_high);
    *middle = fold(*middle);
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
    V x[STRIPE], y[STRIPE], low[STRIPE] = {{0}}, middle[STRIPE] = {{0}};
    hash(seeds, schedule->round[CHECK_0], x, y);
    UNROLL for (int i = 0; i < STRIPE; i++) {
        size_t j = k + i * WORDS;
        V hashed = x[i] & P;
        if (s.has_values) hashed = with_step(s, j, hashed, first[i], last[i]);
        weigh(s, j, hashed, y[i] & P, 0, low + i, middle + i);
        run_on(s, CONTROLS, j, seeds->t[i] & weight(s, 3 * CHECKS, j));
    }
    hash(seeds, schedule->round[CHECK_1], x, y);
    UNROLL for (int i = 0; i < STRIPE; i++) {
        size_t j = k + i * WORDS;
        weigh(s, j, x[i] & P, y[i] & P, 2, low + i, middle + i);
        run_on(s, MIDDLE, j, middle[i]);
        run_on(s, LOW, j, fold(low[i]));
    }
}

/* leaf_sums for all leaves of a node, or leaf_lanes where they have weights of their own, and what the check adds up. All
 * but `pairs` of a small domain are constants. */
INLINE void check_node(const struct group *g, struct node at, const uint64_t *weights, uint64_t sums[MAX_LEAVES],
                       int has_values, int must_fold, int pairs, int own_weights)
{
    const struct schedule *schedule = g->job->schedule;
    const struct leaf_words words = leaf_words(g);
    const struct stripe s = {g->running, weights, has_values, must_fold, own_weights};
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
            if (!own_weights) count_leaves(&totals, pair, k, x);
            UNROLL for (int i = 0; i < STRIPE; i++) {
                uint64_t *each = g->each + (k + i * WORDS) * MAX_LEAVES + 2 * pair;
                if (own_weights) store_pairs(each, fold(x[0][i] + v[i]), fold(x[1][i] + v[i]));
                run_on(s, LEAVES + 2 * pair, k + i * WORDS, x[0][i]);
                run_on(s, LEAVES + 2 * pair + 1, k + i * WORDS, x[1][i]);
                if (!pair) first[i] = x[0][i] + v[i];
                if (pair == pairs - 1) last[i] = x[1][i] + v[i];
            }
        }
        check_hashes(s, &seeds, schedule, k, first, last);
    }
    if (!own_weights) finish_leaves(&totals, sums);
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
        for (size_t k = 0; k < g->keys; k++, to++)
            for (int i = 0; i < WEIGHTS; i++) to[i * SMALL_GROUP] = from[i];
    }
    if (g->job->shape.has_values) check_node(g, *at, g->planes, NULL, 1, 1, PAIRS, 1);
    else check_node(g, *at, g->planes, NULL, 0, 1, PAIRS, 1);
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

/* The rows of `seen` for each lane, canonical: the weighed hashes, the control bits, the steps at the leaves. */
LOOP void see_lanes(const struct group *g, int rows)
{
    V row[SEEN_ROWS + MAX_LEAVES];
    for (size_t k = 0; k < g->count; k += WORDS) {
        const uint64_t *running = g->running + k;
        V middle = canonical(load(running + MIDDLE * SMALL_GROUP));
        V rotated = ((middle & LOW_31) << 30) | (middle >> 31);
        row[0] = fold(load(running + LOW * SMALL_GROUP)) + rotated;
        row[1] = load(running + CONTROLS * SMALL_GROUP);
        for (int leaf = 0; leaf < rows - SEEN_ROWS; leaf++) row[SEEN_ROWS + leaf] = step_sum(g, k, leaf);
        for (int r = 0; r < rows; r++) store(g->planes + r * SMALL_GROUP + k, canonical(row[r]));
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
            uint64_t last = fold_word(g->running[PREVIOUS * SMALL_GROUP + left * g->keys + k]);
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
