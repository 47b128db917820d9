/* Many points: nodes as AES blocks. Sixteen bytes are a lane's seed, and hashes are used as they come: a child's seed is
 * the left hash corrected, a pair of leaves is one block. Corrections are copied into the same form once for a group, a
 * level's into three parts of 2 SMALL_GROUP words: for the left child's seed, for the right one's, and the value's, twice.
 *
 * What is collected on the way is either kept for each lane, twice in a block, or, where only sums are wanted, as one word
 * for the whole group, since sums need no more.
 */
enum { LOT = BLOCKS_PER_VECTOR == 4 ? 4 : 8, LOT_LANES = LOT * BLOCKS_PER_VECTOR, PART = 2 * SMALL_GROUP };

/* As many vectors of lanes as hide the latency of an AES instruction: sigma of their seeds, control bits as masks. Of the
 * widest vectors four are enough, and of others where there is more to do than AES, as in a check: HALF a lot. */
enum { HALF = 4, HALF_LANES = HALF * BLOCKS_PER_VECTOR };

struct lot {
    V sigma[LOT];
    MASK t[LOT];
};

INLINE void load_vectors(struct lot *lot, const uint64_t *seeds, int vectors)
{
    const V none = {0}, second_words = UNPACKLO(none, ~none);
    UNROLL for (int i = 0; i < vectors; i++) {
        V seed = load(seeds + i * WORDS);
        lot->sigma[i] = SWAP(seed) ^ (seed & second_words);
        lot->t[i] = MASK_OF(UNPACKLO(seed, seed));
    }
}

INLINE void load_lot(struct lot *lot, const uint64_t *seeds) { load_vectors(lot, seeds, LOT); }

/* AES of a lot's sigma, which is its hash but for adding sigma. */
INLINE void aes_lot(const struct lot *lot, const uint8_t round[ROUND_KEYS][16], V out[], int vectors)
{
    UNROLL for (int i = 0; i < vectors; i++) out[i] = lot->sigma[i];
    aes(out, vectors, round);
}

INLINE void hash_lot(const struct lot *lot, const uint8_t round[ROUND_KEYS][16], V out[LOT])
{
    aes_lot(lot, round, out, LOT);
    UNROLL for (int i = 0; i < LOT; i++) out[i] ^= lot->sigma[i];
}

/* Other work with vector i of a lot. */
typedef void Work(void *with, int i);

/* AES as above, and the work that an earlier one has left. For half a lot the work, and `more` if it is not NULL, stand
 * between the rounds: a processor may divide instructions among its units as they come, and would give a run of others to
 * those that do AES. For more vectors the work stands before them, since registers are few. */
INLINE void aes_beside(const struct lot *lot, const uint8_t round[ROUND_KEYS][16], V out[], int vectors, Work *work,
                       Work *more, void *with)
{
    if (vectors > HALF) {
        UNROLL for (int i = 0; i < vectors; i++) work(with, i);
        aes_lot(lot, round, out, vectors);
        return;
    }
    UNROLL for (int i = 0; i < HALF; i++) out[i] = lot->sigma[i];
    UNROLL for (int r = 0; r < ROUND_KEYS; r++) {
        aes_round(out, HALF, round, r);
        if (r % 2 && r / 2 < HALF) work(with, r / 2);
        if (more && r % 2 == 0 && r) more(with, r / 2 - 1);
    }
}

/* A total over a group takes six words of at most p + 7 before it must be folded, which need not be for wide vectors. */
enum { FOLD_TOTAL_EVERY = 6, FOURS = SMALL_GROUP / (4 * BLOCKS_PER_VECTOR) };

/* Add vector i of the lot that begins with lane k to a total: `sum` is of up to four, of at most 2p each, less 4 in all. */
INLINE void count_vector(V *total, V *sum, V x, int i, size_t k)
{
    *sum = i % 4 ? *sum + x : x;
    if (i % 4 != 3) return;
    size_t four = (k / BLOCKS_PER_VECTOR + i) / 4;
    *total += fold(*sum);
    if ((int)FOURS > FOLD_TOTAL_EVERY && four % FOLD_TOTAL_EVERY == FOLD_TOTAL_EVERY - 1) *total = fold(*total);
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
    V total = {0}, sum;
    for (size_t k = 0; k < g->count; k += LOT_LANES) {
        struct lot lot;
        load_lot(&lot, at->lo + 2 * k);
        if (has_values) {
            V v[LOT];
            child_values(g, &lot, cw_value, k, v);
            if (!each) UNROLL for (int i = 0; i < LOT; i++) count_vector(&total, &sum, v[i], i, k);
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
        add_blocks(fold(total), both);
        if (left) *left->collected = fold_word(*at->collected + both[0]);
        if (right) *right->collected = fold_word(*at->collected + both[1]);
    }
}

/* A lot on its way to both children: AES, then what follows from it. */
struct expanded {
    struct lot lot;
    const uint64_t *live, *collected, *cw_value, *cw[2];
    struct node child[2];
    size_t at; /* where in a part it begins */
    int each, must_fold;
    V value[LOT], seed[2][LOT], total, sum;
};

INLINE void expand_value(void *with, int i)
{
    struct expanded *e = with;
    size_t j = e->at + i * WORDS;
    V hashed = (e->value[i] ^ e->lot.sigma[i]) & load(e->live + j);
    V both = ADD_WHERE(e->lot.t[i], hashed, load(e->cw_value + j));
    if (!e->each) {
        count_vector(&e->total, &e->sum, both, i, e->at / 2);
        return;
    }
    both += load(e->collected + j);
    if (e->must_fold) both = fold(both);
    store(e->child[0].collected + j, UNPACKLO(both, both));
    store(e->child[1].collected + j, UNPACKHI(both, both));
}

INLINE void expand_seed(struct expanded *e, int side, int i)
{
    size_t j = e->at + i * WORDS;
    V hashed = e->seed[side][i] ^ e->lot.sigma[i];
    store(e->child[side].lo + j, XOR_WHERE(e->lot.t[i], hashed, load(e->cw[side] + j)));
}

INLINE void expand_left(void *with, int i) { expand_seed(with, 0, i); }

INLINE void expand_both(const struct group *g, int level, const struct node *at, const struct node child[2],
                        int has_values, int each)
{
    const struct schedule *schedule = g->job->schedule;
    const uint64_t *seeds = at->lo;
    const size_t count = g->count, vectors = each ? HALF : LOT;
    struct expanded e = {.live = g->live, .collected = at->collected, .cw_value = level_part(g, level, 2), .each = each};
    e.must_fold = level % FOLD_EVERY == FOLD_EVERY - 1 || level == depth(&g->job->shape) - 1;
    UNROLL for (int side = 0; side < 2; side++) e.cw[side] = level_part(g, level, side), e.child[side] = child[side];
    for (e.at = 0; e.at < 2 * count; e.at += vectors * WORDS) {
        load_vectors(&e.lot, seeds + e.at, vectors);
        if (has_values) {
            aes_lot(&e.lot, schedule->round[VALUE], e.value, vectors);
            aes_beside(&e.lot, schedule->round[LEFT], e.seed[0], vectors, expand_value, NULL, &e);
        } else
            aes_lot(&e.lot, schedule->round[LEFT], e.seed[0], vectors);
        aes_beside(&e.lot, schedule->round[RIGHT], e.seed[1], vectors, expand_left, NULL, &e);
        UNROLL for (int i = 0; i < (int)vectors; i++) expand_seed(&e, 1, i);
    }
    if (has_values && !each) {
        uint64_t both[2];
        add_blocks(fold(e.total), both);
        for (int side = 0; side < 2; side++) *child[side].collected = fold_word(*at->collected + both[side]);
    }
}

LOOP void expand_blocks(const struct group *g, int level, const struct node *at, const struct node *left,
                        const struct node *right)
{
    const int has_values = g->job->shape.has_values;
    if (left && right) {
        const struct node child[2] = {*left, *right};
        if (!has_values) expand_both(g, level, at, child, 0, 0);
        else if (g->each_lane) expand_both(g, level, at, child, 1, 1);
        else expand_both(g, level, at, child, 1, 0);
    } else
        expand_blocks_to(g, level, at, left, right, has_values, g->each_lane);
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
