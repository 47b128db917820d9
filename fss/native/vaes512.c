/* Four blocks an instruction. */
#ifdef __x86_64__
#define TARGET "vaes,aes,avx512f"
#define BLOCKS_PER_VECTOR 4
#include "loops.h"

const struct set fss_vaes512 = SET("vaes512");
#endif
