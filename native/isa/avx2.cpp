#include "agreement.h"
#include "hull.h"
#include "kernels.h"

namespace slim {
extern const InstructionSet avx2;
const InstructionSet avx2{"avx2", kernels<float>(), kernels<double>(), &move_margins, &agreement};
}  // namespace slim
