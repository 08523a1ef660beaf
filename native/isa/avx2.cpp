#include "agreement.h"
#include "hinge.h"
#include "hull.h"
#include "kernels.h"
#include "squared_hinge.h"
#include "step.h"

namespace slim {
extern const InstructionSet avx2;
const InstructionSet avx2{
    "avx2", kernels<float>(), kernels<double>(), &move_margins, &agreement, &hinge, &squared_hinge, &kStepKernels};
}  // namespace slim
