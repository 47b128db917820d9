/* Whether the machine code itself branches on a secret or takes one for an address, also where valgrind does not know its
 * instructions: every loop runs step by step, on secrets that differ and everything else alike. The instructions that are
 * executed and the addresses that they use must be the same each time. machine_code.py says which addresses those are.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include "kernel.h"

#if defined(__x86_64__) && defined(__linux__)
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* One instruction's operand in memory: base + scale index + displacement; -1 is no register. */
struct operand {
    int8_t base, index, is_there;
    uint8_t scale;
    int32_t displacement;
};

enum { NO_REGISTER = -1 };

static const int registers[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
static struct operand *operands; /* by address, from `start` on */
static uint64_t start, size;
static volatile uint64_t digest, steps, known;

static void mix(uint64_t x) { digest = (digest ^ x) * UINT64_C(0x9e3779b97f4a7c15), digest = digest ^ digest >> 29; }

static uint64_t value(const greg_t *now, int8_t which) { return which == NO_REGISTER ? 0 : (uint64_t)now[registers[which]]; }

static void step(int signal, siginfo_t *info, void *context)
{
    const greg_t *now = ((ucontext_t *)context)->uc_mcontext.gregs;
    static uint64_t last;
    uint64_t at = now[REG_RIP] - start;
    (void)signal, (void)info;
    if ((uint64_t)now[REG_RIP] == last) return; /* a repeated instruction, whose steps are as long as it likes */
    last = now[REG_RIP];
    mix(now[REG_RIP]), mix(now[REG_RSP]);
    steps++;
    if (at >= size || !operands[at].is_there) return;
    const struct operand *o = operands + at;
    mix(value(now, o->base) + o->scale * value(now, o->index) + (uint64_t)(int64_t)o->displacement);
    known++;
}

static void read_operands(void)
{
    uint64_t end, at;
    int base, index, scale, displacement;
    if (scanf("%" SCNx64 " %" SCNx64, &start, &end) != 2) puts("no operands on standard input"), exit(1);
    size = end - start;
    operands = calloc(size, sizeof *operands);
    if (!operands) abort();
    while (scanf("%" SCNx64 " %d %d %d %d", &at, &base, &index, &scale, &displacement) == 5)
        if (at - start < size) operands[at - start] = (struct operand){base, index, 1, scale, displacement};
}

/* The trap flag makes the processor stop after every instruction. */
static void start_steps(void) { __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc"); }
static void stop_steps(void) { __asm__ volatile("pushfq\n\tandq $-0x101, (%%rsp)\n\tpopfq" ::: "memory", "cc"); }

/* The program is linked so that these take the place of the library's (--wrap). The allocator's ways depend on what was
 * freed before: here a loop has one piece of memory at a time, at the same address. Copying takes a step for every byte:
 * here its addresses and size are noted, and it runs at once. */
static _Alignas(64) char memory[1 << 20];
static int tracing;
void *__wrap_aligned_alloc(size_t alignment, size_t wanted);
void __wrap_free(void *unused);
void *__wrap_memcpy(void *to, const void *from, size_t count);
void *__wrap_memset(void *to, int byte, size_t count);

void *__wrap_memcpy(void *to, const void *from, size_t count)
{
    if (tracing) stop_steps(), mix((uint64_t)to), mix((uint64_t)from), mix(count);
    memmove(to, from, count);
    if (tracing) start_steps();
    return to;
}

void *__wrap_memset(void *to, int byte, size_t count)
{
    if (tracing) stop_steps(), mix((uint64_t)to), mix(count);
    for (volatile char *at = to; count--; at++) *at = byte;
    if (tracing) start_steps();
    return to;
}

void *__wrap_aligned_alloc(size_t alignment, size_t wanted) { return alignment <= 64 && wanted <= sizeof memory ? memory : NULL; }

void __wrap_free(void *unused) { (void)unused; }

/* The digest of what `run` does. */
static __attribute__((noinline)) uint64_t traced(void (*run)(void *), void *argument)
{
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, old;
    digest = steps = known = 0;
    sigaction(SIGTRAP, &action, &old);
    tracing = 1;
    start_steps();
    run(argument);
    stop_steps();
    tracing = 0;
    sigaction(SIGTRAP, &old, NULL);
    return digest;
}

enum { MOST_KEYS = 40, BITS = 6, POINTS = 1 << BITS, RUNS = 3, TABLE = 203 };

/* Everything that a loop reads or writes, at the same addresses for all secrets. */
struct work {
    const struct set *set;
    struct schedule schedule;
    struct shape shape;
    size_t keys;
    int what;
    uint64_t alphas[MOST_KEYS], rand[4 * MOST_KEYS], beta[MOST_KEYS], proof_rand[PROOF_RAND * MOST_KEYS];
    uint64_t words[2][64 * MOST_KEYS], ends[4 * MOST_KEYS], proofs[2][(PROOF_WORDS + MAX_LEAVES) * MOST_KEYS];
    uint64_t constants[1 + MAX_LEAVES * MAX_LEAVES], weights[WEIGHTS << BITS], points[2], sums[POINTS];
    uint64_t each[POINTS * MOST_KEYS], seen[(SEEN_ROWS + MAX_LEAVES) * MOST_KEYS];
    uint64_t table[TABLE], table_weights[TABLE], table_sums[TABLE], dots[2];
};

enum { GEN, PROVE, SUM_POINTS, SUM_DOMAIN, EACH_POINT, EACH_DOMAIN, CHECK, WORDS_OF_TABLE, LOOPS };
static const char *const names[] = {"gen", "prove", "sums at points", "sums", "shares at points", "shares", "check", "table"};

static struct rows rows_of(const struct work *w, const uint64_t *start)
{
    return (struct rows){(char *)start, 8 * (ptrdiff_t)w->keys};
}

static void run_eval(struct work *w)
{
    int at_points = w->what == SUM_POINTS || w->what == EACH_POINT, each = w->what == EACH_POINT || w->what == EACH_DOMAIN;
    struct eval_job job = {w->shape, &w->schedule, w->keys, rows_of(w, w->words[0]), at_points ? w->points : NULL,
                           at_points ? 2 : POINTS, each ? NULL : w->sums, rows_of(w, w->each),
                           w->what == CHECK ? w->weights : NULL, rows_of(w, w->seen)};
    if (w->set->eval(&job)) abort();
}

/* A seed's elements, which are the next words too, and the sums of words. */
static void run_table(struct work *w)
{
    w->set->table_dot((char *)w->table, w->table_weights, TABLE, w->dots);
    w->set->table_add((char *)w->table, 1, w->table_sums, TABLE);
    w->set->table_add((char *)w->table, 4, w->table_sums, TABLE);
    w->set->table_expand(&w->schedule, w->rand, 3, w->table, TABLE);
}

static void run_loop(void *argument)
{
    struct work *w = argument;
    if (w->what == WORDS_OF_TABLE) {
        run_table(w);
        return;
    }
    struct gen_job gen = {w->shape, &w->schedule, w->keys, (char *)w->alphas, (char *)w->rand, (char *)w->beta,
                          {rows_of(w, w->words[0]), rows_of(w, w->words[1])}, rows_of(w, w->ends)};
    struct prove_job prove = {w->shape, &w->schedule, w->keys, (char *)w->alphas, (char *)w->proof_rand, rows_of(w, w->ends),
                              w->constants, {rows_of(w, w->proofs[0]), rows_of(w, w->proofs[1])}};
    if (w->what == GEN ? w->set->gen(&gen) : w->what == PROVE ? w->set->prove(&prove) : (run_eval(w), 0)) abort();
}

static void fill(uint64_t *words, size_t count, uint64_t seed, uint64_t mask)
{
    for (size_t i = 0; i < count; i++) {
        seed = (seed + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
        words[i] = (seed ^ seed >> 31) & mask;
    }
}

#define FILL(array, seed, mask) fill(array, sizeof(array) / 8, seed, mask)

static void set_secrets(struct work *w, uint64_t seed)
{
    FILL(w->alphas, seed, POINTS - 1), FILL(w->rand, seed + 1, UINT64_MAX), FILL(w->beta, seed + 2, P >> 1);
    FILL(w->proof_rand, seed + 3, UINT64_MAX), FILL(w->ends, seed + 4, UINT64_MAX);
    FILL(w->words[0], seed + 5, P >> 1), FILL(w->table, seed + 6, P >> 1), FILL(w->table_sums, seed + 7, P >> 1);
}

/* Two leaks that must be seen: a branch on a secret, and a secret as an index. */
static void branch(void *argument)
{
    struct work *w = argument;
    for (int k = 0; k < MOST_KEYS; k++)
        if (w->alphas[k] & 1) __asm__ volatile("nop\n\tnop");
}

static void look_up(void *argument)
{
    struct work *w = argument;
    for (int k = 0; k < MOST_KEYS; k++) *(volatile uint64_t *)(w->sums + w->alphas[k]);
}

static uint64_t trace_of(struct work *w, void (*run)(void *), uint64_t secrets)
{
    set_secrets(w, secrets);
    uint64_t found = traced(run, w);
    if (!known) puts("the trace has no addresses: is the table of another program?"), exit(1);
    return found;
}

/* Whether the traces of all secrets are the same; after a first run, in which the linker finds what is called. */
static int is_constant(struct work *w, void (*run)(void *))
{
    run(w);
    uint64_t first = trace_of(w, run, 0);
    for (int i = 1; i < RUNS; i++)
        if (trace_of(w, run, 1000 * i) != first) return 0;
    return 1;
}

int try_traces(const struct set *sets[], int found)
{
    static struct work w;
    uint64_t all = 0;
    read_operands();
    if (is_constant(&w, branch)) puts("a branch on a secret is not noticed"), exit(1);
    if (is_constant(&w, look_up)) puts("a secret as an index is not noticed"), exit(1);
    FILL(w.constants, 1, P >> 1), FILL(w.weights, 2, LOW_31 >> 1), FILL(w.table_weights, 4, P >> 1);
    fill((uint64_t *)&w.schedule, sizeof w.schedule / 8, 3, UINT64_MAX);
    w.points[0] = 5, w.points[1] = POINTS - 1;
    int wide = 0; /* those that valgrind does not know; or all, if there are none */
    while (wide < found && !strncmp(sets[wide]->name, "vaes", 4)) wide++;
    if (wide) found = wide;
    for (int s = 0; s < found; s++)
        for (int has_values = 0; has_values < 2; has_values++)
            for (w.keys = 3; w.keys <= MOST_KEYS; w.keys += MOST_KEYS - 3)
                for (w.what = 0; w.what < LOOPS; w.what++) {
                    w.set = sets[s], w.shape = (struct shape){has_values, BITS};
                    if (!is_constant(&w, run_loop))
                        printf("%s: %s of %zu keys depends on a secret\n", w.set->name, names[w.what], w.keys), exit(1);
                    all += steps;
                }
    for (int s = 0; s < found; s++) printf("%s%s", s ? ", " : "", sets[s]->name);
    printf(": the same %" PRIu64 " instructions and addresses for all secrets\n", all);
    free(operands);
    return 0;
}
#else
int try_traces(const struct set *sets[], int found)
{
    (void)sets, (void)found;
    puts("only on x86-64 and Linux");
    return 0;
}
#endif
