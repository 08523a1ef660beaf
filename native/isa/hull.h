// The inner loop of the nearest point of a hull: updates the margins and finds the smallest in one pass.
#pragma once

#include <algorithm>

#include "../plan.h"
#include "../simd.h"

namespace {

using slim::Index;

constexpr Index kAhead = 256;  // numbers to prefetch: rows come from memory, and processors prefetch only within a page

// D_j ← keep D_j + first row_j + second other_j for one vector from j on; returns −D_j.
template <bool both>
SLIM_INLINE Vec<double> move_vector(const slim::Move& move, double* margins, Index j) {
    Vec<double> margin = splat<double>(move.keep) * load<double>(margins + j) +
                         splat<double>(move.first) * load<double>(move.row + j);
    if (both) margin = margin + splat<double>(move.second) * load<double>(move.other + j);
    store<double>(margins + j, margin);
    return splat<double>(0.0) - margin;
}

template <bool both>
Index move_all(const slim::Move& given, double* margins, Index n) {
    using V = Vec<double>;
    constexpr int W = Simd<double>::W;
    constexpr int several = 4;  // vectors, each with its own maximum of −D, because each comparison waits for the last one
    constexpr Index block = 64 * W;  // the block of the smallest margin is remembered, and searched at the end
    const slim::Move move = given;  // a copy, which stores to margins cannot change
    double smallest = 0.0;
    Index where = 0;
    for (Index begin = 0; begin < n; begin += block) {
        const Index end = std::min(begin + block, n);
        Index j = begin;
        V top[several];
        for (V& each : top) each = splat<double>(-1.7976931348623157e308);
        for (; j + several * W <= end; j += several * W) {
            SLIM_UNROLL
            for (int k = 0; k < several; ++k) {
                if (k * W % 8 == 0) {  // a cache line
                    prefetch(move.row + j + k * W + kAhead);
                    if (both) prefetch(move.other + j + k * W + kAhead);
                }
                top[k] = larger(move_vector<both>(move, margins, j + k * W), top[k]);
            }
        }
        for (; j + W <= end; j += W) top[0] = larger(move_vector<both>(move, margins, j), top[0]);
        double lane[W];
        store<double>(lane, larger(larger(top[0], top[1]), larger(top[2], top[3])));
        double low = -*std::max_element(lane, lane + W);
        for (; j < end; ++j) {
            margins[j] = move.keep * margins[j] + move.first * move.row[j] + move.second * move.other[j];
            low = std::min(low, margins[j]);
        }
        if (begin == 0 || low < smallest) {
            smallest = low;
            where = begin;
        }
    }
    const Index end = std::min(where + block, n);
    for (Index j = where; j < end; ++j)
        if (margins[j] == smallest) return j;
    return where;
}

Index move_margins(const slim::Move& move, double* margins, Index n) {
    return move.second == 0.0 ? move_all<false>(move, margins, n) : move_all<true>(move, margins, n);
}

}  // namespace
