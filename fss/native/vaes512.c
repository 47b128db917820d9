/* Four blocks an instruction. */
#define TARGET "vaes,aes,avx512f"
#define BLOCKS_PER_VECTOR 4
#include "vector.h"
#include "field.h"
#include "eval.h"
#include "gen.h"

const struct set fss_vaes512 = {"vaes512", gen, eval};
