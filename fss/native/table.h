/* Tables: the elements of a seed, and the sums that a check needs of words. fss/table_words.py and fss/table_check.py say
 * what they are. Words are secret and only ever data; how many there are, weights and factors are public. */

/* Vectors of blocks on their way through AES, as many as hide its latency. */
enum { TABLE_VECTORS = 8, TABLE_WORDS = TABLE_VECTORS * WORDS };

/* Blocks of two words from number `first` on: sigma of seed xor number is hi || (hi xor lo xor number). */
LOOP void table_expand(const struct schedule *schedule, const uint64_t seed[2], uint64_t first, uint64_t *out, size_t count)
{
    uint64_t fixed[WORDS], numbers[WORDS], steps[WORDS], rest[TABLE_WORDS];
    for (int i = 0; i < WORDS; i += 2) {
        fixed[i] = seed[1], fixed[i + 1] = seed[0] ^ seed[1];
        numbers[i] = steps[i] = 0, numbers[i + 1] = first + i / 2, steps[i + 1] = BLOCKS_PER_VECTOR;
    }
    V base = load(fixed), number = load(numbers), step = load(steps);
    for (size_t done = 0; done < count; done += TABLE_WORDS) {
        V x[TABLE_VECTORS], sigma[TABLE_VECTORS];
        size_t left = count - done;
        uint64_t *to = left < TABLE_WORDS ? rest : out + done;
        UNROLL for (int i = 0; i < TABLE_VECTORS; i++) {
            x[i] = sigma[i] = base ^ number;
            number += step;
        }
        aes(x, TABLE_VECTORS, schedule->round[0]);
        UNROLL for (int i = 0; i < TABLE_VECTORS; i++) store(to + i * WORDS, canonical((x[i] ^ sigma[i]) & P));
        if (left < TABLE_WORDS) memcpy(out + done, rest, 8 * left);
    }
}

static inline uint64_t word_at(const char *words, size_t i)
{
    uint64_t word;
    memcpy(&word, words + 8 * i, 8);
    return word;
}

/* The sum of words times weights, at most p + 7: by halves of 31 and 30 bits, as `mul` has them. Two
 * products below 2^62, or in the middle two pairs below 2^62 one after the other, and what was there add up to no more than
 * a word holds. */
LOOP uint64_t sum_of_words(const char *words, const uint64_t *weights, size_t count)
{
    size_t i = 0;
    uint64_t sum = 0, rest = 0;
    V low = {0}, middle = {0}, high = {0};
    for (; i + 2 * WORDS <= count; i += 2 * WORDS) {
        UNROLL for (int k = 0; k < 2; k++) {
            V x = load(words + 8 * (i + k * WORDS)), w = load(weights + i + k * WORDS);
            V x_high = x >> 31, w_high = w >> 31, x_low = x & LOW_31, w_low = w & LOW_31;
            low += MUL32(x_low, w_low);
            middle = fold(middle + MUL32(x_low, w_high) + MUL32(x_high, w_low));
            high += MUL32(x_high, w_high);
        }
        low = fold(low);
        high = fold(high);
    }
    for (; i < count; i++) rest = fold_word(rest + mul_words(word_at(words, i), weights[i]));
    /* 2^62 = 2, and 2^31 times the middle is turned. */
    sum = total(low) + 2 * total(high) + mul_words(total(middle), LOW_31 + 1);
    return fold_word(fold_word(sum) + rest);
}

/* The sum of words, at most p + 7: of low and high halves, of which a word holds 2^32. */
LOOP uint64_t plain_sum(const char *words, size_t count)
{
    const uint64_t low_half = UINT32_MAX;
    uint64_t low[WORDS], high[WORDS];
    size_t i = 0;
    V lows = {0}, highs = {0};
    for (; i + WORDS <= count; i += WORDS) {
        V x = load(words + 8 * i);
        lows += x & low_half;
        highs += x >> 32;
    }
    store(low, lows), store(high, highs);
    wide sum = 0;
    for (int k = 0; k < WORDS; k++) sum += low[k] + ((wide)high[k] << 32);
    for (; i < count; i++) sum += word_at(words, i);
    return fold_wide(sum);
}

static void table_dot(const char *words, const uint64_t *weights, size_t count, uint64_t sums[2])
{
    sums[0] = canonical_word(sum_of_words(words, weights, count));
    sums[1] = canonical_word(plain_sum(words, count));
}

/* Add factor times words to sums. The factor is public, and mostly 1. */
LOOP void table_add(const char *words, uint64_t factor, uint64_t *sums, size_t count)
{
    const V none = {0}, factors = none + factor;
    size_t i = 0;
    for (; factor == 1 && i + WORDS <= count; i += WORDS)
        store(sums + i, canonical(load(sums + i) + load(words + 8 * i)));
    for (; i + WORDS <= count; i += WORDS) store(sums + i, canonical(load(sums + i) + mul(load(words + 8 * i), factors)));
    for (; i < count; i++) sums[i] = canonical_word(fold_word(sums[i] + mul_words(word_at(words, i), factor)));
}
