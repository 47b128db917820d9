/* Two blocks an instruction. */
#define TARGET "vaes,aes,avx2"
#define BLOCKS_PER_VECTOR 2
#include "vector.h"
#include "field.h"
#include "eval.h"
#include "gen.h"

const struct set fss_vaes256 = {"vaes256", gen, eval};
