// Linear machines with hinge or squared hinge loss on few features: the compiled loops of optim/margin.py.
#pragma once

#include "plan.h"

namespace slim {

// A problem of optim/margin.py, scaled: features phi [rows][features], and sign, offset and cost
// [copies * rows][outputs]; ridge, tilt and least have one number for each output.
struct MarginProblem {
    const double* phi;
    Index rows, features, copies, outputs;
    const double *sign, *offset, *cost, *ridge, *tilt, *least;
};

// Where the search begins and ends: w [features][outputs], b [outputs], and f, alpha, s and t
// [copies * rows][outputs]. Only the hinge reads f, alpha, s and t. Value and gap [outputs] are written.
struct MarginState {
    double *w, *b, *f, *alpha, *s, *t, *value, *gap;
};

// Solves every output; returns the number of iterations, negative if one of the outputs did not converge.
Index solve_margin(const MarginProblem& problem, bool squared, double tolerance, Index most, const MarginState& state);

}  // namespace slim
