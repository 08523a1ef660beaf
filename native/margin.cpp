#include "margin.h"

#include <algorithm>
#include <vector>

namespace slim {
namespace {

constexpr Index kLanes = 8;  // features are padded to whole vectors of any instruction set

using Values = std::vector<double>;

// The features with a column of ones, whose weight is b, and zeros up to `width`.
Values widened(const MarginProblem& p, Index width) {
    Values rows(static_cast<std::size_t>(p.rows * width));
    for (Index i = 0; i < p.rows; ++i) {
        std::copy_n(p.phi + i * p.features, p.features, rows.data() + i * width);
        rows[static_cast<std::size_t>(i * width + p.features)] = 1.0;
    }
    return rows;
}

void take(const double* table, Index n, Index columns, Index c, double* out) {
    for (Index i = 0; i < n; ++i) out[i] = table[i * columns + c];
}

void put(const double* values, Index n, Index columns, Index c, double* table) {
    for (Index i = 0; i < n; ++i) table[i * columns + c] = values[i];
}

}  // namespace

Index solve_margin(const MarginProblem& p, bool squared, double tolerance, Index most, const MarginState& state) {
    const Index all = p.rows * p.copies, q = p.outputs, width = (p.features + 1 + kLanes - 1) / kLanes * kLanes;
    const Values rows = widened(p, width);
    Values given(static_cast<std::size_t>(3 * all)), moved(static_cast<std::size_t>(width + 4 * all));
    Values room(static_cast<std::size_t>(margin_room(p.features, width, all)));
    const InstructionSet& set = best_instruction_set();
    Index taken = 0;
    bool every = true;
    for (Index c = 0; c < q; ++c) {
        double *sign = given.data(), *offset = sign + all, *cost = offset + all;
        double *x = moved.data(), *f = x + width, *alpha = f + all, *s = alpha + all, *t = s + all;
        take(p.sign, all, q, c, sign);
        take(p.offset, all, q, c, offset);
        take(p.cost, all, q, c, cost);
        std::fill(moved.begin(), moved.end(), 0.0);
        take(state.w, p.features, q, c, x);
        x[p.features] = state.b[c];
        if (!squared) {
            take(state.f, all, q, c, f);
            take(state.alpha, all, q, c, alpha);
            take(state.s, all, q, c, s);
            take(state.t, all, q, c, t);
        }
        MarginOutput one{rows.data(), p.rows, p.features, p.copies, width, sign, offset, cost, p.ridge[c], p.tilt[c],
                         p.least[c], x, f, alpha, s, t, room.data(), 0.0, 0.0, 0};
        every = (squared ? set.squared_hinge : set.hinge)(one, tolerance, most) && every;
        put(x, p.features, q, c, state.w);
        state.b[c] = x[p.features];
        put(alpha, all, q, c, state.alpha);
        state.value[c] = one.value;
        state.gap[c] = one.gap;
        taken = std::max(taken, one.n_iter);
    }
    return every ? taken : -taken;
}

}  // namespace slim
