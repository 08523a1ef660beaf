// Which instruction set this processor has.
#include <cstdlib>
#include <cstring>

#include "plan.h"

#if defined(SLIM_X86_SETS) && defined(_MSC_VER)
#include <intrin.h>
#endif

namespace slim {
namespace {

#if defined(SLIM_X86_SETS)
#if defined(_MSC_VER)
bool has(int leaf7_bit, unsigned long long saved_state) {
    int info[4];
    __cpuid(info, 1);
    const bool fma = info[2] & (1 << 12), saves = info[2] & (1 << 27);
    if (!fma || !saves || (_xgetbv(0) & saved_state) != saved_state) return false;
    __cpuidex(info, 7, 0);
    return info[1] & (1 << leaf7_bit);
}
bool has_avx2() { return has(5, 0x6); }
bool has_avx512() { return has(16, 0xe6) && has(17, 0xe6) && has(30, 0xe6) && has(31, 0xe6); }
#else
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif
#endif

const InstructionSet* choose() {
    const char* wish = std::getenv("SLIMSVM_INSTRUCTION_SET");
    (void)wish;
#if defined(SLIM_X86_SETS)
    const auto allowed = [wish](const char* name) { return !wish || !*wish || std::strcmp(wish, name) == 0; };
    if (has_avx512() && allowed("avx512")) return &avx512;
    if (has_avx2() && allowed("avx2")) return &avx2;
#endif
    return &baseline;
}

}  // namespace

const InstructionSet& best_instruction_set() {
    static const InstructionSet* const best = choose();
    return *best;
}

}  // namespace slim
