// Counts how often the sum of two rows is positive, for the search for mirror points.
#pragma once

#include "plan.h"

namespace slim {

// counts[r][c] = Σ_i weights[i] [a[r][i] + b[c][i] > 0] for a [rows][n] and b [columns][n]; all weights are 1 if null.
// The result has the same bits for any number of threads.
void agreement(const float* a, Index rows, const float* b, Index columns, Index n, const float* weights, double* counts,
               int threads);

}  // namespace slim
