/* Proofs beside keys, a stripe at a time: fss/proof.py says what, and why; the names are its own. Alpha's leaf acts as masks. */

struct proof_batch {
    const struct prove_job *job;
    _Alignas(64) uint64_t alpha[ROW], ends[4][ROW], rand[PROOF_RAND][ROW];
    _Alignas(64) uint64_t words[2][PROOF_WORDS + MAX_LEAVES][ROW];
};

/* z (h_i(s_0) - h_i(s_1)) with the sign of t_0 - t_1, two at a time; the step into the node is added to the first. */
INLINE void correct_hashes(struct proof_batch *batch, const struct seeds seeds[2], int check, size_t k)
{
    const struct shape *shape = &batch->job->shape;
    V h[2][2][STRIPE];
    for (int b = 0; b < 2; b++) hash(&seeds[b], batch->job->schedule->round[CHECK_0 + check], h[b][0], h[b][1]);
    for (int i = 0; i < STRIPE; i++) {
        size_t j = k + i * WORDS;
        V alpha = load(batch->alpha + j), z = (alpha >> leaf_bits(shape)) + 1, sign = seeds[1].t[i] & P;
        V first = (V)((alpha & (uint64_t)(leaves(shape) - 1)) == 0) & (uint64_t)(shape->has_values && !check);
        for (int half = 0; half < 2; half++) {
            V apart = fold((h[0][half][i] & P) + ((h[1][half][i] & P) ^ P) + (half ? (V){0} : first));
            V c = canonical(canonical(mul(apart, z)) ^ sign);
            for (int b = 0; b < 2; b++) store(batch->words[b][2 * check + half] + j, c);
        }
    }
}

/* Share a secret of at most 4p: server 1's share is random. */
INLINE void share(struct proof_batch *batch, int row, size_t j, V secret)
{
    V one = canonical(load(batch->rand[1 + row] + j) & P);
    store(batch->words[1][CHECKS + row] + j, one);
    store(batch->words[0][CHECKS + row] + j, canonical(secret + (one ^ P)));
}

/* q at 0..m. With f = w l_0 + l, l being 1 at alpha's leaf: (w^2 l_0 - w + 2 w l) / Z(0) + (l^2 - l) / Z */
INLINE void share_quotient(struct proof_batch *batch, size_t j, int m)
{
    const uint64_t *constant = batch->job->constants;
    const V none = {0};
    V here[MAX_LEAVES], leaf = load(batch->alpha + j) & (uint64_t)(m - 1), w = canonical(load(batch->rand[0] + j) & P);
    V scaled = canonical(mul(w, none + *constant++)), minus = scaled ^ P;
    UNROLL for (int i = 0; i < MAX_LEAVES; i++) here[i] = (V)(leaf == (uint64_t)i);
    share(batch, 0, j, w);
    share(batch, 1, j, fold(mul(w, scaled) + minus));
    for (int row = 0; row < m; row++) {
        V fixed = none, own = (V)(leaf == (uint64_t)row);
        UNROLL for (int i = 0; i < m; i++) fixed |= here[i] & *constant++;
        share(batch, 2 + row, j, fixed + blend(own, scaled, minus));
    }
}

LOOP void prove_stripe(struct proof_batch *batch, size_t k)
{
    struct seeds seeds[2];
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < STRIPE; i++) {
            size_t j = k + i * WORDS;
            sigma(&seeds[b], i, load(batch->ends[2 * b] + j), load(batch->ends[2 * b + 1] + j));
        }
    for (int check = 0; check < CHECKS / 2; check++) correct_hashes(batch, seeds, check, k);
    int m = leaves(&batch->job->shape);
    for (int i = 0; i < STRIPE; i++)
        if (m == MAX_LEAVES) share_quotient(batch, k + i * WORDS, MAX_LEAVES);
        else share_quotient(batch, k + i * WORDS, m);
}

static void read_ends(struct proof_batch *batch, size_t first, size_t count)
{
    const struct prove_job *job = batch->job;
    memcpy(batch->alpha, job->alphas + 8 * first, 8 * count);
    for (int row = 0; row < 4; row++)
        memcpy(batch->ends[row], job->ends.start + row * job->ends.stride + 8 * first, 8 * count);
    for (size_t k = 0; k < count; k++)
        for (int i = 0; i < PROOF_RAND; i++)
            memcpy(batch->rand[i] + k, job->rand + 8 * (PROOF_RAND * (first + k) + i), 8);
}

static int prove(const struct prove_job *job)
{
    struct proof_batch *batch = aligned_alloc(64, sizeof *batch);
    if (!batch) return -1;
    batch->job = job;
    for (size_t first = 0; first < job->keys; first += GROUP) {
        size_t count = job->keys - first < GROUP ? job->keys - first : GROUP;
        read_ends(batch, first, count);
        for (size_t k = 0; k < count; k += STRIPE_KEYS) prove_stripe(batch, k);
        for (int b = 0; b < 2; b++)
            for (int row = 0; row < PROOF_WORDS + leaves(&job->shape); row++)
                memcpy(job->words[b].start + row * job->words[b].stride + 8 * first, batch->words[b][row], 8 * count);
    }
    free(batch);
    return 0;
}
