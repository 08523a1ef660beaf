#include "agreement.h"
#include "hull.h"
#include "kernels.h"

namespace slim {
extern const InstructionSet avx512;
const InstructionSet avx512{"avx512", kernels<float>(), kernels<double>(), &move_margins, &agreement};
}  // namespace slim
