/* What this processor can do, by CPUID. */
#include "kernel.h"

int fss_sets(const struct set *sets[MAX_SETS])
{
    int count = 0;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("sse4.2")) return 0;
    if (__builtin_cpu_supports("vaes") && __builtin_cpu_supports("avx512f")) sets[count++] = &fss_vaes512;
    if (__builtin_cpu_supports("vaes") && __builtin_cpu_supports("avx2")) sets[count++] = &fss_vaes256;
    sets[count++] = &fss_aesni;
    return count;
}
