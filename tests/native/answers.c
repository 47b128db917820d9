/* Known answers, made by answers.py of the frozen vectors: words in hexadecimal on standard input, case after case. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

static uint64_t next(void)
{
    uint64_t word;
    if (scanf("%" SCNx64, &word) != 1) puts("the known answers end too early"), exit(1);
    return word;
}

static uint64_t *next_words(size_t count)
{
    uint64_t *words = malloc(8 * count + 8);
    if (!words) abort();
    for (size_t i = 0; i < count; i++) words[i] = next();
    return words;
}

static void compare(const struct set *set, const char *what, const uint64_t *found, const uint64_t *known, size_t count)
{
    if (!memcmp(found, known, 8 * count)) return;
    printf("%s: %s differ from the known answer\n", set->name, what);
    exit(1);
}

/* One key pair, its shares at some points and, if there are weights, what a check sees of each key. */
struct answer {
    struct shape shape;
    struct schedule schedule;
    uint64_t *given, *words[2], *points, *shares[2], *weights, *seen[2]; /* given: alpha, beta, 4 words of randomness */
    uint64_t rows, answers, nodes;
};

static void try_one(const struct set *set, const struct answer *a)
{
    const ptrdiff_t stride = 8;
    uint64_t *words[2], ends[4], rows = SEEN_ROWS + leaves(&a->shape);
    for (int b = 0; b < 2; b++) words[b] = calloc(a->rows + 1, 8);
    struct gen_job job = {a->shape, &a->schedule, 1, (char *)a->given, (char *)(a->given + 2), (char *)(a->given + 1),
                          {{(char *)words[0], stride}, {(char *)words[1], stride}}, {(char *)ends, stride}};
    if (set->gen(&job)) abort();
    for (int b = 0; b < 2; b++) {
        uint64_t *each = calloc(a->answers + 1, 8), *sums = calloc(MAX_LEAVES * a->nodes + 1, 8), seen[SEEN_ROWS + MAX_LEAVES];
        struct eval_job at = {a->shape, &a->schedule, 1, {(char *)words[b], stride}, a->points, a->answers, NULL,
                              {(char *)each, stride}, NULL, {0}};
        if (set->eval(&at)) abort();
        compare(set, "words", words[b], a->words[b], a->rows);
        compare(set, "shares", each, a->shares[b], a->answers);
        at.points = NULL, at.answers = UINT64_C(1) << a->shape.bits, at.sums = sums;
        at.weights = a->weights, at.seen = (struct rows){(char *)seen, stride};
        if (a->nodes && set->eval(&at)) abort();
        if (a->nodes) compare(set, "what is seen", seen, a->seen[b], rows);
        free(each), free(sums);
    }
    free(words[0]), free(words[1]);
}

static int next_answer(struct answer *a)
{
    uint64_t more = next();
    if (!more) return 0;
    uint64_t *keys = next_words(2 * HASHES), about[2] = {next(), next()};
    a->shape = (struct shape){about[0], about[1]};
    fss_schedule(&a->schedule, (const uint8_t(*)[16])keys);
    a->given = next_words(6);
    a->rows = next();
    if (a->rows != (uint64_t)key_words(&a->shape)) puts("wrong number of words"), exit(1);
    for (int b = 0; b < 2; b++) a->words[b] = next_words(a->rows);
    a->answers = next();
    a->points = next_words(a->answers);
    for (int b = 0; b < 2; b++) a->shares[b] = next_words(a->answers);
    a->nodes = next();
    a->weights = next_words(WEIGHTS * a->nodes);
    for (int b = 0; b < 2; b++) a->seen[b] = next_words(a->nodes ? SEEN_ROWS + leaves(&a->shape) : 0);
    free(keys);
    return 1;
}

int try_answers(const struct set *sets[], int found)
{
    struct answer a;
    int count = 0;
    for (; next_answer(&a); count++) {
        for (int s = 0; s < found; s++) try_one(sets[s], &a);
        free(a.given), free(a.points), free(a.weights);
        for (int b = 0; b < 2; b++) free(a.words[b]), free(a.shares[b]), free(a.seen[b]);
    }
    for (int s = 0; s < found; s++) printf("%s%s", s ? ", " : "", sets[s]->name);
    printf(": %d known answers, all well\n", count);
    return !count;
}
