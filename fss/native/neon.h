/* What vector.h needs of an AArch64 processor with AES: `aes`, and how words are unpacked and multiplied. */
#include <arm_neon.h>

#define UNPACKLO(a, b) ((V)vzip1q_u64((uint64x2_t)(a), (uint64x2_t)(b)))
#define UNPACKHI(a, b) ((V)vzip2q_u64((uint64x2_t)(a), (uint64x2_t)(b)))
#define SWAP(a) ((V)vextq_u64((uint64x2_t)(a), (uint64x2_t)(a), 1))
#define MUL32(a, b) ((V)vmull_u32(vmovn_u64((uint64x2_t)(a)), vmovn_u64((uint64x2_t)(b))))

INLINE V same_block(const uint64_t *from) { return load(from); }

/* One instruction adds the round key before it substitutes, so the last key is left to be added at the end. */
INLINE void aes(V *x, int count, const uint8_t round[ROUND_KEYS][16])
{
    for (int r = 0; r < ROUND_KEYS - 2; r++) {
        const uint8x16_t key = vld1q_u8(round[r]);
        UNROLL for (int i = 0; i < count; i++) x[i] = (V)vaesmcq_u8(vaeseq_u8((uint8x16_t)x[i], key));
    }
    const uint8x16_t key = vld1q_u8(round[ROUND_KEYS - 2]), last = vld1q_u8(round[ROUND_KEYS - 1]);
    UNROLL for (int i = 0; i < count; i++) x[i] = (V)veorq_u8(vaeseq_u8((uint8x16_t)x[i], key), last);
}
