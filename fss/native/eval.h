/* Evaluation: a group of keys walks down the tree, depth first, to the points that are wanted. Where points are few, or
 * every share is written, seeds are held as planes, as keys are; where many are summed, as blocks (blocks.h). Where keys
 * are few, each walks from many nodes at once (lanes.h).
 *
 * Which nodes are visited follows from the points, which are public. Control bits act as masks.
 */
#include <stdlib.h>

/* With few points memory is what an evaluation waits for, and whole pages of a row are read in place. With many, the
 * words of few keys are copied together, so that they stay in the cache while the tree below them is walked. */
enum { FEW_ANSWERS = 32, LARGE_GROUP = 512, SMALL_GROUP = 64 };

/* As planes, or as blocks from `lo` on, up to `collected`. */
struct node {
    uint64_t *lo, *hi, *collected;
};

struct group {
    const struct eval_job *job;
    size_t first, keys; /* which keys */
    size_t count;       /* lanes: keys, times the nodes that each walks from */
    int top;            /* the level of those nodes */
    uint64_t place[SMALL_GROUP]; /* of each node, counted from the left */
    int in_blocks, each_lane;    /* the form of the nodes; what is collected is kept for each lane */
    struct rows words;  /* of the lanes, in place or copied */
    uint64_t *live;     /* p for a lane; 0 for what fills up the last vectors, so that its values count as 0 */
    struct node nodes[2 * MAX_BITS], root; /* two for each level */
    uint64_t *copy, *each;
    uint64_t *running, *planes; /* for a check: sums of each lane, and what is seen (check.h) */
    const uint64_t *weights[SMALL_GROUP]; /* where lanes are at different nodes, those of their first terminal nodes */
};

static size_t group_size(const struct eval_job *job)
{
    return job->answers > FEW_ANSWERS || job->weights ? SMALL_GROUP : LARGE_GROUP;
}

static const char *row(const struct group *g, int word) { return g->words.start + word * g->words.stride; }

/* Rows that are read in place lie too far apart for the processor to foresee, so the words of the next level are asked
 * for one level ahead. */
INLINE void prefetch(const struct group *g, int word, size_t k)
{
    if (g->words.start == (char *)g->copy) return;
    for (int w = word; w < word + 3; w++)
        for (int byte = 0; byte < 8 * STRIPE_KEYS; byte += 64) __builtin_prefetch(row(g, w) + 8 * k + byte);
}

/* What is collected, at most p + 7, takes three additions of at most 2p before it must be folded. */
enum { FOLD_EVERY = 3 };

/* BCG+21 Fig. 3, Eval lines 3 to 9: from a node to those of its children that are wanted (not NULL, and constants where
 * this is called, so that nothing is computed in vain). */
INLINE void expand_to(const struct group *g, int level, const struct node *at, const struct node *left,
                      const struct node *right, int has_values)
{
    const struct schedule *schedule = g->job->schedule;
    int word = level_word(&g->job->shape, level), must_fold = level % FOLD_EVERY == FOLD_EVERY - 1;
    const char *cw_lo = row(g, word), *cw_hi = row(g, word + 1), *cw_value = row(g, word + 2), *control = row(g, CONTROL);
    for (size_t k = 0; k < g->count; k += STRIPE_KEYS) {
        struct seeds s;
        V first[STRIPE], second[STRIPE];
        prefetch(g, level_word(&g->job->shape, level + 1), k);
        UNROLL for (int i = 0; i < STRIPE; i++) sigma(&s, i, load(at->lo + k + i * WORDS), load(at->hi + k + i * WORDS));
        if (has_values) {
            hash(&s, schedule->round[VALUE], first, second);
            UNROLL for (int i = 0; i < STRIPE; i++) {
                size_t j = k + i * WORDS;
                V live = load(g->live + j), v = load(at->collected + j) + (s.t[i] & load(cw_value + 8 * j));
                first[i] = v + (first[i] & live);
                second[i] = v + (second[i] & live);
            }
            if (must_fold)
                UNROLL for (int i = 0; i < STRIPE; i++) first[i] = fold(first[i]), second[i] = fold(second[i]);
            UNROLL for (int i = 0; i < STRIPE; i++) {
                if (left) store(left->collected + k + i * WORDS, first[i]);
                if (right) store(right->collected + k + i * WORDS, second[i]);
            }
        }
        if (left) {
            hash(&s, schedule->round[LEFT], first, second);
            UNROLL for (int i = 0; i < STRIPE; i++) {
                size_t j = k + i * WORDS;
                store(left->lo + j, first[i] ^ (s.t[i] & load(cw_lo + 8 * j)));
                store(left->hi + j, second[i] ^ (s.t[i] & load(cw_hi + 8 * j)));
            }
        }
        if (right) {
            hash(&s, schedule->round[RIGHT], first, second);
            UNROLL for (int i = 0; i < STRIPE; i++) {
                size_t j = k + i * WORDS;
                V turn = (load(control + 8 * j) << (63 - level)) & TOP_BIT;
                store(right->lo + j, first[i] ^ (s.t[i] & (load(cw_lo + 8 * j) ^ turn)));
                store(right->hi + j, second[i] ^ (s.t[i] & load(cw_hi + 8 * j)));
            }
        }
    }
}

LOOP void expand(const struct group *g, int level, const struct node *at, const struct node *left,
                 const struct node *right)
{
    if (!g->job->shape.has_values) expand_to(g, level, at, left, right, 0);
    else if (!right) expand_to(g, level, at, left, NULL, 1);
    else if (!left) expand_to(g, level, at, NULL, right, 1);
    else expand_to(g, level, at, left, right, 1);
}

#include "leaves.h"
#include "blocks.h"
#include "leaf_blocks.h"
#include "check.h"
#include "lanes.h"

static int leaf_of(const struct eval_job *job, uint64_t answer)
{
    return (job->points ? job->points[answer] : answer) & (leaves(&job->shape) - 1);
}

/* A terminal node, above the answers `from` to `to` - 1, where not all of its leaves are wanted, or not in blocks. */
static void finish_some(const struct group *g, const struct node *at, uint64_t from, uint64_t to)
{
    const struct eval_job *job = g->job;
    _Alignas(64) uint64_t sums[MAX_LEAVES];
    int wanted[PAIRS] = {0};
    for (uint64_t a = from; a < to; a++) wanted[leaf_of(job, a) / 2] = 1;
    if (job->sums) {
        if (g->in_blocks) sum_wanted(g, at, wanted, sums);
        else leaf_sums(g, at, wanted, sums);
        for (uint64_t a = from; a < to; a++) job->sums[a] = fold_word(job->sums[a] + sums[leaf_of(job, a)]);
        return;
    }
    leaf_each(g, at, wanted);
    for (uint64_t a = from; a < to; a++) {
        char *row = job->each.start + (ptrdiff_t)a * job->each.stride;
        int leaf = leaf_of(job, a);
        while (!wanted[leaf / 2]) leaf = (leaf + 2) % MAX_LEAVES; /* a point changed meanwhile: show what was computed */
        memcpy(row + 8 * g->first, g->each + leaf * group_size(job), 8 * g->count);
    }
}

/* Add the sums of all leaves of a terminal node, at most p + 7 each, to the answers. */
LOOP void add_leaves(uint64_t *answers, const uint64_t sums[MAX_LEAVES], uint64_t count)
{
    if (count < MAX_LEAVES)
        for (uint64_t i = 0; i < count; i++) answers[i] = fold_word(answers[i] + sums[i]);
    else
        for (int i = 0; i < MAX_LEAVES; i += WORDS) store(answers + i, fold(load(answers + i) + load(sums + i)));
}

/* Any terminal node. */
static void finish(const struct group *g, const struct node *at, uint64_t from, uint64_t to)
{
    const struct eval_job *job = g->job;
    _Alignas(64) uint64_t sums[MAX_LEAVES];
    if (g->top) {
        finish_lanes(g, at, from);
        return;
    }
    if (!g->in_blocks || job->points) {
        finish_some(g, at, from, to);
        return;
    }
    if (job->weights) check_leaves(g, at, from / leaves(&job->shape), sums);
    else sum_blocks(g, at, sums);
    add_leaves(job->sums + from, sums, to - from);
}

/* The first of the answers below a node of this level that lies to the right. */
static uint64_t split(const struct eval_job *job, int level, uint64_t from, uint64_t to)
{
    int bit = job->shape.bits - 1 - level;
    if (!job->points) return from + (UINT64_C(1) << bit);
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        if (job->points[middle] >> bit & 1)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

static void walk(const struct group *g, int level, const struct node *at, uint64_t from, uint64_t to)
{
    if (level == depth(&g->job->shape)) {
        finish(g, at, from, to);
        return;
    }
    uint64_t middle = split(g->job, level, from, to);
    const struct node *left = g->nodes + 2 * level, *right = left + 1;
    (g->in_blocks ? expand_blocks : expand)(g, level, at, from < middle ? left : NULL, middle < to ? right : NULL);
    if (from < middle) walk(g, level + 1, left, from, middle);
    if (middle < to) walk(g, level + 1, right, middle, to);
}

/* Copy the words of the group's keys together. */
static void copy_words(struct group *g, size_t size)
{
    for (int w = 0; w < key_words(&g->job->shape); w++) {
        uint64_t *to = g->copy + w * size;
        memcpy(to, row(g, w), 8 * g->keys);
        memset(to + g->keys, 0, 8 * (size - g->keys));
    }
    g->words = (struct rows){(char *)g->copy, 8 * size};
}

/* The next keys of the job. */
static void set_group(struct group *g, size_t first)
{
    const struct eval_job *job = g->job;
    size_t size = group_size(job), left = job->keys - first;
    g->first = first;
    g->keys = left < size ? left : size;
    set_top(g);
    g->count = g->keys << g->top;
    g->words = (struct rows){job->words.start + 8 * first, job->words.stride};
    g->in_blocks = size == SMALL_GROUP && (job->sums || g->top);
    g->each_lane = job->weights || g->top;
    memset(g->root.collected, 0, 16 * size);
    if (job->weights) start_check(g);
    if (g->in_blocks) {
        copy_blocks(g);
        return;
    }
    if (g->keys < size || size == SMALL_GROUP) copy_words(g, size);
    for (size_t k = 0; k < size; k++) g->live[k] = k < g->keys ? P : 0;
    memcpy(g->root.lo, row(g, ROOT_LO), 8 * g->keys);
    memcpy(g->root.hi, row(g, ROOT_HI), 8 * g->keys);
}

static struct node take_node(uint64_t **memory, size_t size)
{
    struct node node = {*memory, *memory + size, *memory + 2 * size};
    *memory += 4 * size;
    return node;
}

/* Lay out a group's arrays, of `size` words each. Returns what is to be freed. */
static void *make_group(struct group *g)
{
    const struct shape *shape = &g->job->shape;
    size_t size = group_size(g->job), check = g->job->weights ? 2 * RUNNING + PLANES : 0;
    size_t copied = FIRST_LEVEL + 2 * (3 * depth(shape) + PAIRS); /* enough for blocks and for planes */
    size_t arrays = copied + MAX_LEAVES + 2 + 4 * (2 * depth(shape) + 1) + check;
    uint64_t *memory = aligned_alloc(64, 8 * size * arrays), *next = memory;
    if (!memory) return NULL;
    g->copy = next, next += copied * size;
    g->each = next, next += MAX_LEAVES * size;
    g->live = next, next += 2 * size;
    if (check) g->running = next, g->planes = next + 2 * RUNNING * size, next += check * size;
    g->root = take_node(&next, size);
    for (int i = 0; i < 2 * depth(shape); i++) {
        g->nodes[i] = take_node(&next, size);
        if (!shape->has_values) g->nodes[i].collected = g->root.collected; /* a DPF collects nothing on the way */
    }
    return memory;
}

static void walk_group(struct group *g)
{
    struct node at = g->root;
    if (g->top) at = walk_top(g);
    walk(g, g->top, &at, 0, g->job->answers >> g->top);
    if (g->job->weights) write_seen(g);
}

static int eval(const struct eval_job *job)
{
    struct group g = {.job = job};
    void *memory = make_group(&g);
    if (!memory) return -1;
    for (size_t first = 0; first < job->keys; first += group_size(job)) {
        set_group(&g, first);
        walk_group(&g);
    }
    free(memory);
    return 0;
}
