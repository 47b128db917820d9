/* Terminal nodes as blocks: the values of their leaves, in sum over a group or for each of its lanes. */

/* What leaves are made of. Plain values: the compiler need not fear that storing a sum changes them. */
struct leaf_parts {
    const uint64_t *cw, *live;
    const struct schedule *schedule;
};

INLINE struct leaf_parts leaf_parts(const struct group *g)
{
    return (struct leaf_parts){leaf_part(g, 0), g->live, g->job->schedule};
}

/* Two leaves of each lane, at most 2p, before what was collected is added. */
INLINE void leaf_blocks(struct leaf_parts parts, const struct lot *lot, int pair, size_t k, V x[LOT])
{
    const uint64_t *cw = parts.cw + pair * PART + 2 * k, *live = parts.live + 2 * k;
    hash_lot(lot, parts.schedule->round[pair], x);
    UNROLL for (int i = 0; i < LOT; i++)
        x[i] = ADD_WHERE(lot->t[i], x[i] & load(live + i * WORDS), load(cw + i * WORDS));
}

/* A lot's leaves on their way into sums over the group: `x` is AES of a pair, then the leaves, at most 2p. */
struct summed {
    const struct lot *lot;
    const uint64_t *cw, *live;
    V x[LOT], sum, *total;
    size_t k;
};

INLINE void sum_pair(void *with, int i)
{
    struct summed *s = with;
    V hashed = (s->x[i] ^ s->lot->sigma[i]) & load(s->live + i * WORDS);
    V leaf = ADD_WHERE(s->lot->t[i], hashed, load(s->cw + i * WORDS));
    count_vector(s->total, &s->sum, leaf, i, s->k);
}

/* The sums over the group, at most p + 7 each, of the leaves whose totals these are. */
INLINE void finish_totals(const V totals[PAIRS], uint64_t collected, uint64_t sums[MAX_LEAVES])
{
    V folded[PAIRS];
    UNROLL for (int pair = 0; pair < PAIRS; pair++) folded[pair] = fold(totals[pair]);
    add_pairs(folded, sums);
    for (int i = 0; i < MAX_LEAVES; i += WORDS) store(sums + i, fold(load(sums + i) + collected));
}

/* The leaves of a terminal node in sum over the group, at most p + 7 each; of a small domain, which has fewer, too. */
LOOP void sum_blocks(const struct group *g, const struct node *at, uint64_t sums[MAX_LEAVES])
{
    const struct leaf_parts parts = leaf_parts(g);
    const uint64_t *seeds = at->lo;
    const size_t count = g->count;
    const int pairs = leaves(&g->job->shape) / 2;
    V totals[PAIRS];
    UNROLL for (int pair = 0; pair < PAIRS; pair++) totals[pair] = (V){0};
    for (size_t k = 0; k < count; k += LOT_LANES) {
        struct lot lot;
        load_lot(&lot, seeds + 2 * k);
        struct summed s = {.lot = &lot, .cw = parts.cw + 2 * k, .live = parts.live + 2 * k, .total = totals, .k = k};
        V next[LOT];
        aes_lot(&lot, parts.schedule->round[0], s.x, LOT);
        ROLLED for (int pair = 1; pair < pairs; pair++) {
            aes_beside(&lot, parts.schedule->round[pair], next, LOT, sum_pair, NULL, &s);
            UNROLL for (int i = 0; i < LOT; i++) s.x[i] = next[i];
            s.cw += PART, s.total++;
        }
        UNROLL for (int i = 0; i < LOT; i++) sum_pair(&s, i);
    }
    finish_totals(totals, g->job->shape.has_values ? *at->collected : 0, sums);
}

/* The same for some pairs of leaves. */
LOOP void sum_wanted(const struct group *g, const struct node *at, const int wanted[PAIRS], uint64_t sums[MAX_LEAVES])
{
    const struct leaf_parts parts = leaf_parts(g);
    const uint64_t *seeds = at->lo;
    const size_t count = g->count;
    V totals[PAIRS];
    UNROLL for (int pair = 0; pair < PAIRS; pair++) totals[pair] = (V){0};
    for (size_t k = 0; k < count; k += LOT_LANES) {
        struct lot lot;
        load_lot(&lot, seeds + 2 * k);
        ROLLED for (int pair = 0; pair < PAIRS; pair++)
            if (wanted[pair]) {
                V x[LOT], sum;
                leaf_blocks(parts, &lot, pair, k, x);
                UNROLL for (int i = 0; i < LOT; i++) count_vector(totals + pair, &sum, x[i], i, k);
            }
    }
    finish_totals(totals, g->job->shape.has_values ? *at->collected : 0, sums);
}

/* All leaves of every lane, at most 3p + 7, for lanes that are at different nodes: PAIRS vectors for each vector of lanes. */
LOOP void lane_blocks(const struct group *g, const struct node *at)
{
    const struct leaf_parts parts = leaf_parts(g);
    for (size_t k = 0; k < g->count; k += LOT_LANES) {
        struct lot lot;
        V x[LOT];
        load_lot(&lot, at->lo + 2 * k);
        ROLLED for (int pair = 0; pair < PAIRS; pair++) {
            leaf_blocks(parts, &lot, pair, k, x);
            UNROLL for (int i = 0; i < LOT; i++) {
                size_t lane = k + i * BLOCKS_PER_VECTOR;
                V v = g->job->shape.has_values ? x[i] + load(at->collected + 2 * lane) : x[i];
                store(g->each + lane * MAX_LEAVES + pair * WORDS, v);
            }
        }
    }
}
