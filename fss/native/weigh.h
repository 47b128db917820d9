/* Hashes times weights, for a check: sums of w x, of whose parts the final words are made once, at the end.
 *
 * With 2^61 = 1, and x cut into 31 low and 30 high bits, a weight into 30 low and 31 high ones (Weights.limbs; the low ones
 * also doubled),
 *
 *     w x = (w_low x_low + w_high x_high) + 2^30 (w_high x_low + 2 w_low x_high).
 *
 * Where one instruction multiplies 52 bits and adds the low or the high half of the product, five of them do, and carries
 * wait for hundreds of nodes. With x cut into 43 low and 21 high bits, and u = 2^18 w into 52 low and 9 high ones,
 *
 *     2^18 w x = (low(u_low x_low) + w_low x_high) + 2^30 w_high x_high + 2^52 (high(u_low x_low) + u_high x_low).
 */

/* Blocks of weights: the doubled, the low, the high ones, the control bit's, those of u. */
enum { W_DOUBLE, W_LOW = CHECKS / 2, W_HIGH = 2 * CHECKS / 2, W_CONTROL = 3 * CHECKS / 2, U_LOW, U_HIGH = U_LOW + CHECKS / 2 };

_Static_assert((int)WEIGHT_ONE == 2 * W_CONTROL + 1, "control bits are counted in the second word of their block");

/* A node's weights, the same for all lanes or, where lanes are at different nodes, a row of PART words for each block. */
struct weights {
    const uint64_t *words;
    int own;
};

INLINE V weight(struct weights w, int block, size_t at)
{
    return w.own ? load(w.words + block * PART + at) : same_block(w.words + 2 * block);
}

/* The brackets above, each a running sum of every lane. */
enum { AT_0, AT_30, AT_52 };
static const int bracket_bits[] = {0, 30, 52};

#ifdef MADD_LOW
/* Words of any size are weighed. Four products below 2^52 a node: CARRY_EVERY nodes, and p + 7 before them, fit a word. */
enum { BRACKETS = 3, SCALED_BITS = 18, CARRY_EVERY = 512, FIRST_WEIGHT = W_LOW, END_WEIGHT = WEIGHTS / 2 };
#define LOW_43 ((UINT64_C(1) << 43) - 1)

INLINE V weighable(V x) { return x; }

INLINE void weigh(struct weights w, int i, size_t at, V x, V sums[BRACKETS])
{
    V x_low = x & LOW_43, x_high = x >> 43, u_low = weight(w, U_LOW + i, at);
    sums[AT_0] = MADD_LOW(sums[AT_0], x_low, u_low);
    sums[AT_52] = MADD_HIGH(sums[AT_52], x_low, u_low);
    sums[AT_30] = MADD_LOW(sums[AT_30], x_high, weight(w, W_HIGH + i, at));
    sums[AT_0] = MADD_LOW(sums[AT_0], x_high, weight(w, W_LOW + i, at));
    sums[AT_52] = MADD_LOW(sums[AT_52], x_low, weight(w, U_HIGH + i, at));
}
#else
/* Words of at most p + 7 are. Two of them a node, and what is running, do not overflow: four products of at most 2^61 in the
 * first bracket, two of less than 2^62 and two of at most 2^61 in the second, and p + 7. */
enum { BRACKETS = 2, SCALED_BITS = 0, CARRY_EVERY = 1, FIRST_WEIGHT = 0, END_WEIGHT = W_CONTROL + 1 };

INLINE V weighable(V x) { return fold(x); }

INLINE void weigh(struct weights w, int i, size_t at, V x, V sums[BRACKETS])
{
    V w_high = weight(w, W_HIGH + i, at), x_low = x & LOW_31, x_high = x >> 31;
    sums[AT_30] += MUL32(x_low, w_high) + MUL32(x_high, weight(w, W_DOUBLE + i, at));
    sums[AT_0] += MUL32(x_low, weight(w, W_LOW + i, at)) + MUL32(x_high, w_high);
}
#endif

/* x 2^bits, at most p + 7, for x of at most p + 7 and 0 to 60 bits. */
static inline uint64_t rotate_word(uint64_t x, int bits) { return mul_words(x, UINT64_C(1) << bits); }

/* The sum of all that a lane has weighed, at most p + 7: block j of its brackets is at j PART. */
static uint64_t weighed_sum(const uint64_t *brackets)
{
    uint64_t sum = 0;
    for (int j = 0; j < BRACKETS; j++) {
        const uint64_t *words = brackets + j * PART;
        sum = fold_word(sum + rotate_word(fold_word(fold_word(words[0]) + fold_word(words[1])), bracket_bits[j]));
    }
    return rotate_word(sum, SCALED_BITS ? 61 - SCALED_BITS : 0);
}
