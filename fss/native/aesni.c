/* Any x86-64 processor with AES: one block an instruction. */
#ifdef __x86_64__
#define TARGET "aes,sse4.2"
#define BLOCKS_PER_VECTOR 1
#include "loops.h"

const struct set fss_aesni = SET("aesni");

/* FIPS 197, 5.2; the round constant must be a literal. */
INLINE __m128i next_round(__m128i key, __m128i assist)
{
    for (int i = 0; i < 3; i++) key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    return _mm_xor_si128(key, _mm_shuffle_epi32(assist, 0xff));
}

LOOP void expand_key(uint8_t round[ROUND_KEYS][16], const uint8_t key[16])
{
    __m128i k = _mm_loadu_si128((const __m128i *)key);
    _mm_store_si128((__m128i *)round[0], k);
#define ROUND(i, constant) \
    k = next_round(k, _mm_aeskeygenassist_si128(k, constant)); \
    _mm_store_si128((__m128i *)round[i], k);
    ROUND(1, 0x01) ROUND(2, 0x02) ROUND(3, 0x04) ROUND(4, 0x08) ROUND(5, 0x10)
    ROUND(6, 0x20) ROUND(7, 0x40) ROUND(8, 0x80) ROUND(9, 0x1b) ROUND(10, 0x36)
#undef ROUND
}

void fss_schedule(struct schedule *schedule, const uint8_t keys[HASHES][16])
{
    for (int i = 0; i < HASHES; i++) expand_key(schedule->round[i], keys[i]);
}
#endif
