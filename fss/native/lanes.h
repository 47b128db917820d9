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

/* Of as many pairs of leaves as a vector has blocks, those of each lane side by side. */
INLINE void turn(const V x[BLOCKS_PER_VECTOR], V of[BLOCKS_PER_VECTOR])
{
#if BLOCKS_PER_VECTOR == 4
    for (int half = 0; half < 2; half++) {
        V low = half ? SHUFFLE(x[0], x[1], 4, 5, 6, 7, 12, 13, 14, 15) : SHUFFLE(x[0], x[1], 0, 1, 2, 3, 8, 9, 10, 11);
        V high = half ? SHUFFLE(x[2], x[3], 4, 5, 6, 7, 12, 13, 14, 15) : SHUFFLE(x[2], x[3], 0, 1, 2, 3, 8, 9, 10, 11);
        of[2 * half] = SHUFFLE(low, high, 0, 1, 4, 5, 8, 9, 12, 13);
        of[2 * half + 1] = SHUFFLE(low, high, 2, 3, 6, 7, 10, 11, 14, 15);
    }
#elif BLOCKS_PER_VECTOR == 2
    of[0] = SHUFFLE(x[0], x[1], 0, 1, 4, 5), of[1] = SHUFFLE(x[0], x[1], 2, 3, 6, 7);
#else
    of[0] = x[0];
#endif
}

/* Add every lane's leaves, at most 3p + 7 each, to the answers below its node, which are below 2^63: a word holds both. */
LOOP void add_lanes(const struct group *g, uint64_t from)
{
    size_t node = 0, key = 0; /* of the next lane */
    for (size_t first = 0; first < g->count; first += BLOCKS_PER_VECTOR) {
        const uint64_t *leaf = g->each + first * MAX_LEAVES;
        size_t lanes = g->count - first < BLOCKS_PER_VECTOR ? g->count - first : BLOCKS_PER_VECTOR;
        V of[MAX_LEAVES / WORDS][BLOCKS_PER_VECTOR];
        UNROLL for (int i = 0; i < MAX_LEAVES / WORDS; i++) {
            V x[BLOCKS_PER_VECTOR];
            UNROLL for (int j = 0; j < BLOCKS_PER_VECTOR; j++) x[j] = load(leaf + (i * BLOCKS_PER_VECTOR + j) * WORDS);
            turn(x, of[i]);
        }
        UNROLL for (size_t lane = 0; lane < BLOCKS_PER_VECTOR; lane++) {
            if (lane >= lanes) break;
            uint64_t *to = g->job->sums + first_answer(g, node) + from;
            if (++key == g->keys) node++, key = 0;
            UNROLL for (int i = 0; i < MAX_LEAVES / WORDS; i++)
                store(to + i * WORDS, fold(load(to + i * WORDS) + of[i][lane]));
        }
    }
}

/* Write them, canonical, where no sum is wanted. */
static void write_lanes(const struct group *g, uint64_t from)
{
    for (size_t lane = 0; lane < g->count; lane++) {
        size_t block = lane % BLOCKS_PER_VECTOR;
        const uint64_t *leaf = g->each + (lane - block) * MAX_LEAVES + 2 * block;
        uint64_t answer = first_answer(g, lane / g->keys) + from;
        char *to = g->job->each.start + (ptrdiff_t)answer * g->job->each.stride + 8 * (g->first + lane % g->keys);
        for (int i = 0; i < MAX_LEAVES; i++) {
            uint64_t share = canonical_word(fold_word(leaf[i / 2 * WORDS + i % 2]));
            memcpy(to + i * g->job->each.stride, &share, 8);
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
