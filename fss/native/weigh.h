/* Hashes times weights, for a check: of each lane the sum of w x over all nodes.
 *
 * The products are those of the processor's integer unit, which has nothing else to do: vector units multiply where they
 * do AES. What is running is 128 bits of each lane, low word first.
 */

/* Words of a node's weights: the hashes', and a block with the control bit's and the 1 by which control bits are counted. */
enum { W_CONTROL = CHECKS, W_ONE };
_Static_assert((int)W_ONE + 1 == WEIGHTS, "a node's weights end with the control bit's block");

/* A node's weights, if all lanes are at one; or those of the node where each lane is. */
struct weights {
    const uint64_t *node;
    int own;
    const uint64_t *const *lanes; /* those of each lane's first node, */
    size_t further;               /* and how many words after them those of its present one begin; */
    const uint64_t *controls;     /* of the present nodes, each lane's block */
};

INLINE V control_weight(struct weights w, size_t at) { return w.own ? load(w.controls + at) : same_block(w.node + W_CONTROL); }

INLINE const uint64_t *hash_weights(struct weights w, size_t lane) { return w.own ? w.lanes[lane] + w.further : w.node; }

static inline wide load_wide(const uint64_t *from)
{
    wide x;
    memcpy(&x, from, sizeof x);
    return x;
}

/* Add a node's hashes, the first of any size and others of at most p, to the running sum: less than 2^124 + 2^66. */
INLINE void weigh(const uint64_t *w, const uint64_t first[2], const uint64_t second[2], uint64_t *running, int must_fold)
{
    wide sum = (wide)fold_word(first[0]) * w[0] + (wide)first[1] * w[1] + (wide)second[0] * w[2] + (wide)second[1] * w[3];
    sum += load_wide(running);
    if (must_fold) sum = fold_wide(sum);
    memcpy(running, &sum, sizeof sum);
}

/* The words of a vector, in memory: the compiler must not take them out of it one by one, which is work for vector units. */
INLINE void spill(uint64_t to[WORDS], V x)
{
    store(to, x);
    __asm__("" : "+m"(*(uint64_t(*)[WORDS])to));
}
