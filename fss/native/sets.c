/* What this processor can do, by CPUID, or by what the system says. */
#include "kernel.h"

#if defined(__x86_64__)
int fss_sets(const struct set *sets[MAX_SETS])
{
    int count = 0;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("sse4.2")) return 0;
    int wide = __builtin_cpu_supports("vaes") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    if (wide && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        sets[count++] = &fss_vaes512;
    if (wide) sets[count++] = &fss_vaes256;
    sets[count++] = &fss_aesni;
    return count;
}
#else
#if defined(__linux__)
#include <sys/auxv.h>

static int has_aes(void) { return (getauxval(AT_HWCAP) >> 3 & 1) != 0; } /* HWCAP_AES */
#elif defined(__APPLE__)
static int has_aes(void) { return 1; } /* all of them */
#else
static int has_aes(void) { return 0; }
#endif

int fss_sets(const struct set *sets[MAX_SETS])
{
    sets[0] = &fss_neon;
    return has_aes();
}
#endif
