/* Drives the kernel without Python, for sanitizers and valgrind (make sanitize).
 *
 *   driver           make, prove, evaluate and check keys of many shapes in buffers without a byte to spare; the sums must be
 *                    right, and a check must see the same of both parties' keys but for the node on the path; the same for
 *                    the words of tables
 *   driver secrets   the same, all secrets being uninitialised memory: valgrind then reports every branch and every
 *                    address that depends on one
 *   driver leak      branch on such a secret, to see that valgrind would
 *   driver answers   read known answers (answers.py) and compare
 *   driver trace     run every loop step by step on other and other secrets (trace.c)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

int try_answers(const struct set *sets[], int found); /* answers.c */
int try_traces(const struct set *sets[], int found); /* trace.c */
extern const struct set fss_emulated512;

static uint64_t random_word(void)
{
    static uint64_t x = 88172645463325252;
    x ^= x << 13, x ^= x >> 7;
    return x ^= x << 17;
}

static __attribute__((noinline)) uint64_t *words_of(size_t count, uint64_t mask, int defined)
{
    uint64_t *made = malloc(8 * count);
    if (!made) abort();
    for (size_t i = 0; defined && i < count; i++) made[i] = random_word() & mask;
    return made;
}

static struct rows rows_of(uint64_t *start, size_t columns) { return (struct rows){(char *)start, 8 * (ptrdiff_t)columns}; }

struct trial {
    const struct set *set;
    struct shape shape;
    struct schedule schedule;
    size_t keys;
    uint64_t *alphas, *rand, *beta, *words[2], *ends;
};

static void make(struct trial *t, int defined)
{
    int rows = key_words(&t->shape);
    t->alphas = words_of(t->keys, (UINT64_C(1) << t->shape.bits) - 1, defined);
    t->rand = words_of(4 * t->keys, UINT64_MAX, defined);
    t->beta = words_of(t->keys, P >> 1, defined);
    for (int b = 0; b < 2; b++) t->words[b] = words_of(rows * t->keys, 0, 0);
    t->ends = words_of(4 * t->keys, 0, 0);
    struct gen_job job = {t->shape, &t->schedule, t->keys, (char *)t->alphas, (char *)t->rand, (char *)t->beta,
                          {rows_of(t->words[0], t->keys), rows_of(t->words[1], t->keys)}, rows_of(t->ends, t->keys)};
    if (t->set->gen(&job)) abort();
}

/* (a b + c) mod p */
static uint64_t mul_add(uint64_t a, uint64_t b, uint64_t c) { return ((unsigned __int128)(a % P) * (b % P) + c) % P; }

/* Proofs with any constants: both servers' shares add up to what they should, and their corrections are the same. */
static void prove(const struct trial *t, int defined)
{
    uint64_t m = leaves(&t->shape), rows = PROOF_WORDS + m, *constants = words_of(1 + m * m, P >> 1, 1), *words[2];
    uint64_t *rand = words_of(PROOF_RAND * t->keys, UINT64_MAX, defined);
    for (int b = 0; b < 2; b++) words[b] = words_of(rows * t->keys, 0, 0);
    struct prove_job job = {t->shape, &t->schedule, t->keys, (char *)t->alphas, (char *)rand, rows_of(t->ends, t->keys),
                            constants, {rows_of(words[0], t->keys), rows_of(words[1], t->keys)}};
    if (t->set->prove(&job)) abort();
    for (size_t k = 0; defined && k < t->keys; k++) {
        uint64_t leaf = t->alphas[k] % m, w = (rand[PROOF_RAND * k] & P) % P, scaled = mul_add(w, constants[0], 0);
        for (uint64_t row = 0; row < rows; row++) {
            uint64_t a = words[0][row * t->keys + k], b = words[1][row * t->keys + k], j = row - PROOF_WORDS;
            uint64_t goal = row == CHECKS ? w : row == CHECKS + 1 ? mul_add(w, scaled, P - scaled) : 0;
            if (row >= PROOF_WORDS) goal = (constants[1 + m * j + leaf] + (leaf == j ? scaled : P - scaled)) % P;
            if (a >= P || b >= P || (row < CHECKS ? a != b : (a + b) % P != goal))
                printf("%s: wrong proof\n", t->set->name), exit(1);
        }
    }
    free(constants), free(rand), free(words[0]), free(words[1]);
}

/* The sums of one party, and whether the shares of each key add up to the same. */
static uint64_t *evaluate(const struct trial *t, int party, const uint64_t *points, uint64_t answers, int defined)
{
    uint64_t *sums = words_of(answers, 0, 1), *each = words_of(answers * t->keys, 0, 0);
    struct eval_job job = {t->shape, &t->schedule, t->keys, rows_of(t->words[party], t->keys), points, answers, sums, {0}, NULL, {0}};
    if (t->set->eval(&job)) abort();
    job.sums = NULL, job.each = rows_of(each, t->keys);
    if (t->set->eval(&job)) abort();
    for (uint64_t a = 0; defined && a < answers; a++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < t->keys; k++) sum = (sum + each[a * t->keys + k]) % P;
        if (sum != sums[a] % P) printf("%s: sum differs from its shares\n", t->set->name), exit(1);
    }
    free(each);
    return sums;
}

static void check(const struct trial *t, const uint64_t *points, uint64_t answers, int defined)
{
    uint64_t *of0 = evaluate(t, 0, points, answers, defined), *of1 = evaluate(t, 1, points, answers, defined);
    for (uint64_t a = 0; defined && a < answers; a++) {
        uint64_t at = points ? points[a] : a, truth = 0;
        for (size_t k = 0; k < t->keys; k++)
            if (t->alphas[k] == at || (t->shape.has_values && t->alphas[k] < at)) truth = (truth + t->beta[k]) % P;
        if ((of0[a] % P + P - of1[a] % P) % P != truth) printf("%s: wrong at %lu\n", t->set->name, (unsigned long)at), exit(1);
    }
    free(of0);
    free(of1);
}

/* The sums of a check's pass are those without it, and its steps add up, over both parties, to one payload a key. */
static void observe(const struct trial *t, uint64_t answers, int defined)
{
    uint64_t nodes = UINT64_C(1) << depth(&t->shape), rows = SEEN_ROWS + leaves(&t->shape), *seen[2];
    uint64_t *weights = words_of(nodes * WEIGHTS, LOW_31 >> 1, 1);
    for (uint64_t node = 0; node < nodes; node++) weights[node * WEIGHTS + WEIGHTS - 1] = 1;
    for (int b = 0; b < 2; b++) {
        uint64_t *sums = words_of(answers, 0, 1), *plain = evaluate(t, b, NULL, answers, defined);
        seen[b] = words_of(rows * t->keys, 0, 0);
        struct eval_job job = {t->shape, &t->schedule, t->keys, rows_of(t->words[b], t->keys), NULL, answers, sums, {0},
                               weights, rows_of(seen[b], t->keys)};
        if (t->set->eval(&job)) abort();
        for (uint64_t a = 0; defined && a < answers; a++)
            if (sums[a] % P != plain[a] % P) printf("%s: a check changes the sum\n", t->set->name), exit(1);
        free(sums), free(plain);
    }
    for (size_t k = 0; defined && k < t->keys; k++) {
        uint64_t sum = 0;
        for (uint64_t row = SEEN_ROWS; row < rows; row++)
            sum = (sum + seen[0][row * t->keys + k] + P - seen[1][row * t->keys + k]) % P;
        if (sum != t->beta[k] % P) printf("%s: wrong steps\n", t->set->name), exit(1);
    }
    free(weights), free(seen[0]), free(seen[1]);
}

/* Tables: a seed's elements do not depend on where the expansion starts, and their sums are those of plain arithmetic. */
static void try_table(const struct set *set, size_t count, int defined)
{
    uint8_t aes[HASHES][16];
    struct schedule schedule;
    uint64_t *secret = words_of(4, UINT64_MAX, defined), *weights = words_of(count, P >> 1, 1), *out = words_of(count, 0, 0);
    uint64_t *later = words_of(count, 0, 0), *sums = words_of(count, 0, 1), found[2], dot = 0, plain = 0;
    for (int i = 0; i < HASHES; i++) memcpy(aes[i], secret + 2, 16);
    fss_schedule(&schedule, (const uint8_t(*)[16])aes);
    set->table_expand(&schedule, secret, 5, out, count);
    if (count > 6) set->table_expand(&schedule, secret, 8, later, count - 6);
    set->table_add((char *)out, 1, sums, count);
    set->table_add((char *)out, 4, sums, count);
    set->table_dot((char *)out, weights, count, found);
    for (size_t i = 0; defined && i < count; i++) {
        dot = mul_add(out[i], weights[i], dot), plain = (plain + out[i]) % P;
        if (out[i] >= P || sums[i] != mul_add(out[i], 5, 0) || (i >= 6 && later[i - 6] != out[i]))
            printf("%s: wrong elements of a table\n", set->name), exit(1);
    }
    if (defined && (found[0] != dot || found[1] != plain)) printf("%s: wrong sums of a table\n", set->name), exit(1);
    free(secret), free(weights), free(out), free(later), free(sums);
}

static void try(const struct set *set, struct shape shape, size_t keys, int defined)
{
    uint8_t aes[HASHES][16];
    struct trial t = {.set = set, .shape = shape, .keys = keys};
    for (int i = 0; i < 16 * HASHES; i++) aes[i / 16][i % 16] = random_word();
    fss_schedule(&t.schedule, aes);
    make(&t, defined);
    prove(&t, defined);
    uint64_t last = (UINT64_C(1) << shape.bits) - 1, *points = words_of(2, 0, 1);
    points[0] = last / 3, points[1] = last;
    check(&t, points, 2, defined);
    if (shape.bits < 10) check(&t, NULL, last + 1, defined), observe(&t, last + 1, defined);
    free(points), free(t.alphas), free(t.rand), free(t.beta), free(t.words[0]), free(t.words[1]), free(t.ends);
}

int main(int count, char **arguments)
{
    static const int bits[] = {1, 2, 3, 7, 9, 16, 32};
    static const size_t keys[] = {0, 1, 3, 11, 33, 64, 513};
    const struct set *sets[MAX_SETS + 1];
    int found = fss_sets(sets), secrets = count > 1 && !strcmp(arguments[1], "secrets");
    if (count > 1 && !strcmp(arguments[1], "leak")) return *words_of(1, 0, 0) & 1 ? puts("odd") : puts("even");
#ifdef __x86_64__
    sets[found++] = &fss_emulated512;
#endif
    if (count > 1 && !strcmp(arguments[1], "trace")) return try_traces(sets, found);
    if (count > 1 && !strcmp(arguments[1], "answers")) return try_answers(sets, found);
    for (int s = 0; s < found; s++)
        for (int has_values = 0; has_values < 2; has_values++)
            for (size_t b = 0; b < sizeof bits / sizeof *bits; b++)
                for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
                    try(sets[s], (struct shape){has_values, bits[b]}, keys[k], !secrets);
    for (int s = 0; s < found; s++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) try_table(sets[s], keys[k], !secrets);
    for (int s = 0; s < found; s++) printf("%s%s", s ? ", " : "", sets[s]->name);
    printf(": all well\n");
    return 0;
}
