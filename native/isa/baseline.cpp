#include "agreement.h"
#include "hull.h"
#include "kernels.h"

namespace slim {
extern const InstructionSet baseline;
const InstructionSet baseline{"baseline", kernels<float>(), kernels<double>(), &move_margins, &agreement};
}  // namespace slim
