/* Any AArch64 processor with AES instructions: one block an instruction. */
#ifdef __aarch64__
#if defined(__ARM_FEATURE_AES) || defined(__ARM_FEATURE_CRYPTO)
/* the compiler may use them anyway */
#elif defined(__clang__)
#define TARGET "aes"
#else
#define TARGET "+crypto"
#endif
#define BLOCKS_PER_VECTOR 1
#include "loops.h"

const struct set fss_neon = SET("neon");

/* SubWord of FIPS 197, 5.2: four times the same column, which shifting rows leaves as it is. */
LOOP uint32_t substitute(uint32_t word)
{
    uint8x16_t columns = vreinterpretq_u8_u32(vdupq_n_u32(word));
    return vgetq_lane_u32(vreinterpretq_u32_u8(vaeseq_u8(columns, vdupq_n_u8(0))), 0);
}

static void expand_key(uint8_t round[ROUND_KEYS][16], const uint8_t key[16])
{
    uint32_t word[4 * ROUND_KEYS], constant = 1;
    memcpy(word, key, 16);
    for (int i = 4; i < 4 * ROUND_KEYS; i++) {
        uint32_t last = word[i - 1];
        if (i % 4 == 0) {
            last = substitute(last >> 8 | last << 24) ^ constant;
            constant = constant < 0x80 ? constant << 1 : 0x1b;
        }
        word[i] = word[i - 4] ^ last;
    }
    memcpy(round, word, sizeof word);
}

void fss_schedule(struct schedule *schedule, const uint8_t keys[HASHES][16])
{
    for (int i = 0; i < HASHES; i++) expand_key(schedule->round[i], keys[i]);
}
#endif
