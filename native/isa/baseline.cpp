#include "agreement.h"
#include "hinge.h"
#include "hull.h"
#include "kernels.h"
#include "squared_hinge.h"
#include "step.h"

namespace slim {
extern const InstructionSet baseline;
const InstructionSet baseline{
    "baseline", kernels<float>(), kernels<double>(), &move_margins, &agreement, &hinge, &squared_hinge, &kStepKernels};
}  // namespace slim
