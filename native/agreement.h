// The search for a combination of classifiers: how often a sum of two rows is positive.
#pragma once

#include "plan.h"

namespace slim {

// counts[r][c] = Σ_i weights[i] [a[r][i] + b[c][i] > 0] of a [rows][n] and b [columns][n]; weights are 1 where null. The
// same bits for any number of threads.
void agreement(const float* a, Index rows, const float* b, Index columns, Index n, const float* weights, double* counts,
               int threads);

}  // namespace slim
