/* Many points: nodes as AES blocks. Sixteen bytes are a lane's seed, and hashes are used as they come: a child's seed is
 * the left hash corrected, a pair of leaves is one block. Corrections are copied into the same form once for a group, a
 * level's into three parts of 2 SMALL_GROUP words: for the left child's seed, for the right one's, and the value's, twice.
 *
 * What is collected on the way is either kept for each lane, twice in a block, or, where only sums are wanted, as one word
 * for the whole group, since sums need no more.
 */
enum { LOT = BLOCKS_PER_VECTOR == 4 ? 4 : 8, LOT_LANES = LOT * BLOCKS_PER_VECTOR, PART = 2 * SMALL_GROUP };

/* As many vectors of lanes as hide the latency of an AES instruction: sigma of their seeds, control bits as masks. Of the
 * widest vectors four are enough, and more work of other kinds is within the processor's reach between two hashes. */
struct lot {
    V sigma[LOT];
    MASK t[LOT];
};

INLINE void load_lot(struct lot *lot, const uint64_t *seeds)
{
    const V none = {0}, second_words = UNPACKLO(none, ~none);
    UNROLL for (int i = 0; i < LOT; i++) {
        V seed = load(seeds + i * WORDS);
        lot->sigma[i] = SWAP(seed) ^ (seed & second_words);
        lot->t[i] = MASK_OF(UNPACKLO(seed, seed));
    }
}

INLINE void hash_lot(const struct lot *lot, const uint8_t round[ROUND_KEYS][16], V out[LOT])
{
    UNROLL for (int i = 0; i < LOT; i++) out[i] = lot->sigma[i];
    aes(out, LOT, round);
    UNROLL for (int i = 0; i < LOT; i++) out[i] ^= lot->sigma[i];
}

/* The sum of vectors of at most 2p, less 4 in all for every four: at most p + 7 for as many. */
INLINE V lot_sum(const V x[LOT])
{
    V sum = {0};
    UNROLL for (int i = 0; i < LOT; i += 4) sum += fold(x[i] + x[i + 1] + x[i + 2] + x[i + 3]);
    return sum;
}

/* A total of such sums takes six before it must be folded, which need not be for wide vectors. */
enum { LOTS = SMALL_GROUP / LOT_LANES, FOLD_LOTS_EVERY = 6 / (LOT / 4) };

INLINE V counted_lot(V total, V sum, size_t k)
{
    int must_fold = (int)LOTS > FOLD_LOTS_EVERY && k / LOT_LANES % FOLD_LOTS_EVERY == FOLD_LOTS_EVERY - 1;
    return must_fold ? fold(total + sum) : total + sum;
}

static const uint64_t *level_part(const struct group *g, int level, int part)
{
    return g->copy + (3 * level + part) * PART;
}

static const uint64_t *leaf_part(const struct group *g, int pair) { return level_part(g, depth(&g->job->shape), pair); }

/* The values of both children: H(s) and the correction, at most 2p each. */
INLINE void child_values(const struct group *g, const struct lot *lot, const uint64_t *cw, size_t k, V v[LOT])
{
    const uint64_t *live = g->live;
    hash_lot(lot, g->job->schedule->round[VALUE], v);
    UNROLL for (int i = 0; i < LOT; i++) {
        size_t j = 2 * k + i * WORDS;
        v[i] = ADD_WHERE(lot->t[i], v[i] & load(live + j), load(cw + j));
    }
}

INLINE void corrected_child(const struct lot *lot, const uint8_t round[ROUND_KEYS][16], const uint64_t *cw, uint64_t *to)
{
    V child[LOT];
    hash_lot(lot, round, child);
    UNROLL for (int i = 0; i < LOT; i++) store(to + i * WORDS, XOR_WHERE(lot->t[i], child[i], load(cw + i * WORDS)));
}

/* From a node to those of its children that are wanted (not NULL). `each`: what is collected is kept for each lane; it is
 * folded on the last level too, so that terminal nodes find at most p + 7. */
INLINE void expand_blocks_to(const struct group *g, int level, const struct node *at, const struct node *left,
                             const struct node *right, int has_values, int each)
{
    const struct schedule *schedule = g->job->schedule;
    const uint64_t *cw_left = level_part(g, level, 0), *cw_right = level_part(g, level, 1), *cw_value = level_part(g, level, 2);
    int must_fold = level % FOLD_EVERY == FOLD_EVERY - 1 || level == depth(&g->job->shape) - 1;
    V sum = {0};
    for (size_t k = 0; k < g->count; k += LOT_LANES) {
        struct lot lot;
        load_lot(&lot, at->lo + 2 * k);
        if (has_values) {
            V v[LOT];
            child_values(g, &lot, cw_value, k, v);
            if (!each) sum = counted_lot(sum, lot_sum(v), k);
            else UNROLL for (int i = 0; i < LOT; i++) {
                size_t j = 2 * k + i * WORDS;
                V both = v[i] + load(at->collected + j);
                if (must_fold) both = fold(both);
                if (left) store(left->collected + j, UNPACKLO(both, both));
                if (right) store(right->collected + j, UNPACKHI(both, both));
            }
        }
        if (left) corrected_child(&lot, schedule->round[LEFT], cw_left + 2 * k, left->lo + 2 * k);
        if (right) corrected_child(&lot, schedule->round[RIGHT], cw_right + 2 * k, right->lo + 2 * k);
    }
    if (has_values && !each) {
        uint64_t both[2];
        add_blocks(fold(sum), both);
        if (left) *left->collected = fold_word(*at->collected + both[0]);
        if (right) *right->collected = fold_word(*at->collected + both[1]);
    }
}

LOOP void expand_blocks(const struct group *g, int level, const struct node *at, const struct node *left,
                        const struct node *right)
{
    if (!g->job->shape.has_values) expand_blocks_to(g, level, at, left, right, 0, 0);
    else if (g->each_lane) expand_blocks_to(g, level, at, left, right, 1, 1);
    else expand_blocks_to(g, level, at, left, right, 1, 0);
}

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

/* The leaves of a terminal node in sum over the group, at most p + 7 each. */
LOOP void sum_blocks(const struct group *g, const struct node *at, const int wanted[PAIRS], uint64_t sums[MAX_LEAVES])
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
                V x[LOT];
                leaf_blocks(parts, &lot, pair, k, x);
                totals[pair] = counted_lot(totals[pair], lot_sum(x), k);
            }
    }
    const V none = {0}, collected = none + (g->job->shape.has_values ? *at->collected : 0);
    UNROLL for (int pair = 0; pair < PAIRS; pair++) totals[pair] = fold(totals[pair]);
    add_pairs(totals, sums);
    for (int i = 0; i < MAX_LEAVES; i += WORDS) store(sums + i, fold(load(sums + i) + collected));
}

/* Two leaves of some lanes, of MAX_LEAVES words each. */
INLINE void store_pair(uint64_t *to, V leaves)
{
    UNROLL for (int block = 0; block < BLOCKS_PER_VECTOR; block++)
        memcpy(to + block * MAX_LEAVES, (char *)&leaves + 16 * block, 16);
}

/* All leaves of every lane, at most p + 7, those of a lane side by side: for lanes that are at different nodes. */
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
                V v = g->job->shape.has_values ? fold(x[i] + load(at->collected + 2 * lane)) : fold(x[i]);
                store_pair(g->each + lane * MAX_LEAVES + 2 * pair, v);
            }
        }
    }
}

/* Two rows of words, side by side for each lane; the first `keys` words for every node that they walk from. */
static void interleave(const struct group *g, uint64_t *to, const char *first, const char *second, const uint64_t *turn)
{
    for (size_t lane = 0; lane < g->count; lane += g->keys)
        for (size_t k = 0; k < g->keys; k++) {
            uint64_t words[2];
            memcpy(words, first + 8 * k, 8);
            memcpy(words + 1, second + 8 * k, 8);
            if (turn) words[0] ^= turn[k];
            memcpy(to + 2 * (lane + k), words, 16);
        }
    memset(to + 2 * g->count, 0, 8 * (PART - 2 * g->count));
}

/* The group's corrections and roots in the form that is walked. */
static void copy_blocks(struct group *g)
{
    const struct shape *shape = &g->job->shape;
    uint64_t turn[SMALL_GROUP], *to = g->copy;
    for (int level = 0; level < depth(shape); level++, to += 3 * PART) {
        int word = level_word(shape, level);
        for (size_t k = 0; k < g->keys; k++) {
            uint64_t control;
            memcpy(&control, row(g, CONTROL) + 8 * k, 8);
            turn[k] = control << (63 - level) & TOP_BIT;
        }
        interleave(g, to, row(g, word), row(g, word + 1), NULL);
        interleave(g, to + PART, row(g, word), row(g, word + 1), turn);
        if (shape->has_values) interleave(g, to + 2 * PART, row(g, word + 2), row(g, word + 2), NULL);
    }
    for (int i = 0, word = level_word(shape, depth(shape)); 2 * i < leaves(shape); i++)
        interleave(g, to + i * PART, row(g, word + 2 * i), row(g, word + 2 * i + 1), NULL);
    interleave(g, g->root.lo, row(g, ROOT_LO), row(g, ROOT_HI), NULL);
    for (size_t lane = 0; lane < SMALL_GROUP; lane++) g->live[2 * lane] = g->live[2 * lane + 1] = lane < g->count ? P : 0;
}
