// The inner loop of the nearest point of a hull: margins moved, and the smallest of them found, in one pass.
#pragma once

#include <algorithm>

#include "../plan.h"
#include "../simd.h"

namespace {

using slim::Index;

template <bool both>
Index move_all(const slim::Move& move, double* margins, Index n) {
    using V = Vec<double>;
    constexpr int W = Simd<double>::W;
    constexpr Index block = 64 * W;  // the smallest margin is remembered by blocks, and looked for in one of them
    const V keep = splat<double>(move.keep), first = splat<double>(move.first), second = splat<double>(move.second);
    double smallest = 0.0;
    Index where = 0;
    for (Index begin = 0; begin < n; begin += block) {
        const Index end = std::min(begin + block, n);
        Index j = begin;
        V top = splat<double>(-1.7976931348623157e308);  // of −D
        for (; j + W <= end; j += W) {
            V margin = keep * load<double>(margins + j) + first * load<double>(move.row + j);
            if (both) margin = margin + second * load<double>(move.other + j);
            store<double>(margins + j, margin);
            top = larger(splat<double>(0.0) - margin, top);
        }
        double lane[W];
        store<double>(lane, top);
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
