// What a kernel may use: an instruction set and a number of threads. Results depend on neither.
//
// A kernel that has faster variants keeps its tight loops in tables of plain functions, one table for each instruction
// set, and takes the table of `machine.isa`. Everything around those loops is written once. A function for a particular
// instruction set carries the attribute below, so that no file needs flags of its own and no inline function of the
// standard library is compiled for a processor that may not be there.
#pragma once

#include <string_view>
#include <vector>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define THINWIRE_X86 1
#define THINWIRE_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,f16c,sse4.2")))
#define THINWIRE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi,bmi2,lzcnt,popcnt,f16c,sse4.2")))
#elif defined(__aarch64__)
#define THINWIRE_ARM 1
#endif

namespace thinwire {

enum class Isa { kScalar, kAvx2, kAvx512, kNeon };

// The instruction sets that this processor has and this build knows, best first; the last one is kScalar.
std::vector<Isa> usable_isas();

std::string_view name_of(Isa isa);

struct Machine {
  Isa isa = Isa::kScalar;
  int threads = 1;
};

}  // namespace thinwire
