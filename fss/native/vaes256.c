/* Two blocks an instruction. */
#ifdef __x86_64__
#define TARGET "vaes,aes,avx2,bmi2"
#define BLOCKS_PER_VECTOR 2
#include "loops.h"

const struct set fss_vaes256 = SET("vaes256");
#endif
