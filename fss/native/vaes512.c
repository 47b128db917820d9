/* Four blocks an instruction. Without AVX512DQ the compiler moves masks to general registers and back. */
#ifdef __x86_64__
#define TARGET "vaes,aes,avx512f,avx512bw,avx512dq,avx512vl,bmi2"
#define BLOCKS_PER_VECTOR 4
#include "loops.h"

const struct set fss_vaes512 = SET("vaes512");
#endif
