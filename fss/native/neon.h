/* What vector.h needs of an AArch64 processor with AES: `aes`, and how words are unpacked and multiplied. */
#include <arm_neon.h>

#define UNPACKLO(a, b) ((V)vzip1q_u64((uint64x2_t)(a), (uint64x2_t)(b)))
#define UNPACKHI(a, b) ((V)vzip2q_u64((uint64x2_t)(a), (uint64x2_t)(b)))
#define SWAP(a) ((V)vextq_u64((uint64x2_t)(a), (uint64x2_t)(a), 1))
#define MUL32(a, b) ((V)vmull_u32(vmovn_u64((uint64x2_t)(a)), vmovn_u64((uint64x2_t)(b))))

INLINE V same_block(const uint64_t *from) { return load(from); }

/* Round r of AES: one instruction adds the round key before it substitutes, so the last key is left to be added at the end. */
INLINE void aes_round(V *x, int count, const uint8_t round[ROUND_KEYS][16], int r)
{
    const uint8x16_t key = vld1q_u8(round[r]);
    UNROLL for (int i = 0; i < count; i++) {
        uint8x16_t block = (uint8x16_t)x[i];
        if (r == ROUND_KEYS - 1) x[i] = (V)veorq_u8(block, key);
        else if (r == ROUND_KEYS - 2) x[i] = (V)vaeseq_u8(block, key);
        else x[i] = (V)vaesmcq_u8(vaeseq_u8(block, key));
    }
}

INLINE void aes(V *x, int count, const uint8_t round[ROUND_KEYS][16])
{
    UNROLL for (int r = 0; r < ROUND_KEYS; r++) aes_round(x, count, round, r);
}
