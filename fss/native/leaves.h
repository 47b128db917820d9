/* Terminal nodes as planes: the values of their leaves, in sum over a group or for each of its keys. */

/* The corrections of the leaves. */
struct leaf_words {
    const char *start;
    ptrdiff_t stride;
    const uint64_t *live;
};

INLINE struct leaf_words leaf_words(const struct group *g)
{
    return (struct leaf_words){row(g, level_word(&g->job->shape, depth(&g->job->shape))), g->words.stride, g->live};
}

/* A terminal node's leaf values before what was collected (at most 5p + 7) is added, at most 2p, for one stripe and two
 * leaves. */
INLINE void leaf_pair(struct leaf_words words, const struct seeds *s, const struct schedule *schedule, int pair, size_t k,
                      V x[2][STRIPE])
{
    const char *cw = words.start + 2 * pair * words.stride;
    hash(s, schedule->round[pair], x[0], x[1]);
    UNROLL for (int i = 0; i < STRIPE; i++) {
        size_t j = k + i * WORDS;
        V live = load(words.live + j);
        x[0][i] = (x[0][i] & live) + (s->t[i] & load(cw + 8 * j));
        x[1][i] = (x[1][i] & live) + (s->t[i] & load(cw + words.stride + 8 * j));
    }
}

/* Four words of at most 2p, less 4 in all, still fit; so do four of at most p + 7. */
INLINE V stripe_sum(const V x[STRIPE]) { return fold(x[0] + x[1] + x[2] + x[3]); }

/* What the leaves of a terminal node are in sum over the group, before what was collected is added to each. */
struct leaf_totals {
    V leaf[MAX_LEAVES], collected;
};

INLINE void clear(struct leaf_totals *totals)
{
    UNROLL for (int i = 0; i < MAX_LEAVES; i++) totals->leaf[i] = (V){0};
    totals->collected = (V){0};
}

/* Of words of at most p + 7 seven fit. */
enum { FOLD_TOTALS_EVERY = 4 };

INLINE V counted(V total, const V x[STRIPE], size_t k)
{
    total += stripe_sum(x);
    return k / STRIPE_KEYS % FOLD_TOTALS_EVERY == FOLD_TOTALS_EVERY - 1 ? fold(total) : total;
}

/* A stripe's seeds and what it has collected, at most p + 7. */
INLINE void start_leaves(const struct node *at, size_t k, struct seeds *s, V v[STRIPE], struct leaf_totals *totals,
                         int has_values)
{
    UNROLL for (int i = 0; i < STRIPE; i++) {
        sigma(s, i, load(at->lo + k + i * WORDS), load(at->hi + k + i * WORDS));
        v[i] = has_values ? fold(load(at->collected + k + i * WORDS)) : (V){0};
    }
    if (has_values) totals->collected = counted(totals->collected, v, k);
}

INLINE void count_leaves(struct leaf_totals *totals, int pair, size_t k, V x[2][STRIPE])
{
    totals->leaf[2 * pair] = counted(totals->leaf[2 * pair], x[0], k);
    totals->leaf[2 * pair + 1] = counted(totals->leaf[2 * pair + 1], x[1], k);
}

/* At most p + 7 each. */
INLINE void finish_leaves(const struct leaf_totals *totals, uint64_t sums[MAX_LEAVES])
{
    V collected = fold(totals->collected);
    for (int i = 0; i < MAX_LEAVES; i++) sums[i] = total(fold(fold(totals->leaf[i]) + collected));
}

INLINE void leaf_sums_of(const struct group *g, const struct node *at, const int wanted[PAIRS],
                         uint64_t sums[MAX_LEAVES], int has_values)
{
    const struct schedule *schedule = g->job->schedule;
    const struct leaf_words words = leaf_words(g);
    struct leaf_totals totals;
    clear(&totals);
    for (size_t k = 0; k < g->count; k += STRIPE_KEYS) {
        struct seeds s;
        V v[STRIPE], x[2][STRIPE];
        start_leaves(at, k, &s, v, &totals, has_values);
        ROLLED for (int pair = 0; pair < PAIRS; pair++)
            if (wanted[pair]) {
                leaf_pair(words, &s, schedule, pair, k, x);
                count_leaves(&totals, pair, k, x);
            }
    }
    finish_leaves(&totals, sums);
}

LOOP void leaf_sums(const struct group *g, const struct node *at, const int wanted[PAIRS], uint64_t sums[MAX_LEAVES])
{
    if (g->job->shape.has_values) leaf_sums_of(g, at, wanted, sums, 1);
    else leaf_sums_of(g, at, wanted, sums, 0);
}

/* What they are for each key, canonical. */
LOOP void leaf_each(const struct group *g, const struct node *at, const int wanted[PAIRS])
{
    size_t size = group_size(g->job);
    for (size_t k = 0; k < g->count; k += STRIPE_KEYS) {
        struct seeds s;
        V x[2][STRIPE];
        UNROLL for (int i = 0; i < STRIPE; i++) sigma(&s, i, load(at->lo + k + i * WORDS), load(at->hi + k + i * WORDS));
        ROLLED for (int pair = 0; pair < PAIRS; pair++)
            if (wanted[pair]) {
                leaf_pair(leaf_words(g), &s, g->job->schedule, pair, k, x);
                UNROLL for (int i = 0; i < STRIPE; i++) {
                    size_t j = k + i * WORDS;
                    V v = load(at->collected + j);
                    store(g->each + 2 * pair * size + j, canonical(x[0][i] + v));
                    store(g->each + (2 * pair + 1) * size + j, canonical(x[1][i] + v));
                }
            }
    }
}
