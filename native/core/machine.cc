// Which instruction sets there are.

#include "core/machine.h"

namespace thinwire {

std::vector<Isa> usable_isas() {
  std::vector<Isa> found;
#if THINWIRE_X86
  const bool bits = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("sse4.2") &&
                    __builtin_cpu_supports("pclmul");
  const bool avx2 = bits && __builtin_cpu_supports("avx2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512) found.push_back(Isa::kAvx512);
  if (avx2) found.push_back(Isa::kAvx2);
#elif THINWIRE_ARM
  found.push_back(Isa::kNeon);  // every 64-bit ARM has it
#endif
  found.push_back(Isa::kScalar);
  return found;
}

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kNeon: return "neon";
    case Isa::kScalar: break;
  }
  return "scalar";
}

}  // namespace thinwire
