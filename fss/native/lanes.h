/* Few keys over the whole domain: each walks from all nodes of level `top` at once, so that vectors are full.
 *
 * Lane j keys + k is key k at the j-th node. A level's left children keep their lanes and the right ones follow them, so
 * the choice at the root is the last bit of j: counted from the left the j-th node is number place[j], whose bits are
 * those of j reversed, and place[place[j]] = j.
 */

/* Enough to fill eight vectors of every width. The answers below so many nodes lie on as many pages; with twice as many the
 * processor had to look up where they are more often, and one key took longer. */
enum { LANES = 32 };

/* As many levels as the lanes can hold: 0, if keys fill them or only some points are wanted. */
static void set_top(struct group *g)
{
    const struct eval_job *job = g->job;
    int few = !job->points && group_size(job) == SMALL_GROUP;
    g->top = 0;
    g->place[0] = 0;
    while (few && g->top < depth(&job->shape) && g->keys << (g->top + 1) <= LANES) {
        for (int j = 0, nodes = 1 << g->top; j < nodes; j++) {
            g->place[j] *= 2;
            g->place[nodes + j] = g->place[j] + 1;
        }
        g->top++;
    }
}

/* Level by level, to the nodes of level `top`. First all left children: what their last lot writes too much, the right
 * ones overwrite. */
static struct node walk_top(struct group *g)
{
    struct node at = g->root;
    size_t lanes = g->count;
    g->count = g->keys;
    for (int level = 0; level < g->top; level++, g->count *= 2) {
        const struct node left = g->nodes[2 * level];
        const struct node right = {left.lo + 2 * g->count, NULL, left.collected + 2 * g->count};
        expand_blocks(g, level, &at, &left, NULL);
        expand_blocks(g, level, &at, NULL, &right);
        at = left;
    }
    g->count = lanes;
    return at;
}

static uint64_t first_answer(const struct group *g, size_t node) { return g->place[node] << (g->job->shape.bits - g->top); }

/* Add every lane's leaves, at most p + 7 each, to the answers below its node. */
LOOP void add_lanes(const struct group *g, uint64_t from)
{
    const uint64_t *leaf = g->each;
    for (size_t node = 0; node < (size_t)1 << g->top; node++) {
        uint64_t *to = g->job->sums + first_answer(g, node) + from;
        for (size_t k = 0; k < g->keys; k++, leaf += MAX_LEAVES)
            for (int i = 0; i < MAX_LEAVES; i += WORDS) store(to + i, fold(load(to + i) + load(leaf + i)));
    }
}

/* Write them, canonical, where no sum is wanted. */
static void write_lanes(const struct group *g, uint64_t from)
{
    const uint64_t *leaf = g->each;
    for (size_t node = 0; node < (size_t)1 << g->top; node++) {
        char *row = g->job->each.start + (ptrdiff_t)(first_answer(g, node) + from) * g->job->each.stride + 8 * g->first;
        for (size_t k = 0; k < g->keys; k++)
            for (int i = 0; i < MAX_LEAVES; i++, leaf++) {
                uint64_t share = canonical_word(*leaf);
                memcpy(row + i * g->job->each.stride + 8 * k, &share, 8);
            }
    }
}

/* A terminal node of every lane. Where there are levels above it, it has all leaves. */
static void finish_lanes(const struct group *g, const struct node *at, uint64_t from)
{
    if (g->job->weights) check_lanes(g, at, from / MAX_LEAVES);
    else lane_blocks(g, at);
    if (g->job->sums) add_lanes(g, from);
    else write_lanes(g, from);
}
