// Counts where the sum of two rows is positive. Included once by each of native/isa/*.cpp (see simd.h on linkage).
//
// A tile of R rows and C columns keeps its counts in registers while a strip of samples is read: one load per row and
// per column is enough for R C additions and comparisons, without a branch.
#pragma once

#include "../plan.h"
#include "../simd.h"

namespace {

#if defined(__AVX512F__)
constexpr int kAgreementRows = 4;  // of 32 registers: 16 counts, 8 strips
#else
constexpr int kAgreementRows = 2;  // of 16 registers: 8 counts, 6 strips
#endif
constexpr int kAgreementColumns = 4;
constexpr slim::Index kStrip = 1024;  // samples at a time: the strips of a tile stay in the first-level cache

// The lanes of a tile: counts, or sums of weights, which are added in double after each strip.
struct Counting {
    using Lane = std::int32_t;
    Int32Vector lanes = {};
    SLIM_INLINE void take(FloatVector sum, const float*, slim::Index) { lanes = count_positive(lanes, sum); }
};

struct Weighing {
    using Lane = float;
    FloatVector lanes = {};
    SLIM_INLINE void take(FloatVector sum, const float* weights, slim::Index i) {
        lanes = add_where_positive(lanes, sum, load<float>(weights + i));
    }
};

// One strip of a tile, with n samples of rows of length `width`.
template <class Held, int R, int C>
void agreement_tile(const float* a, const float* b, slim::Index width, slim::Index n, const float* weights,
                    double* counts, slim::Index stride) {
    constexpr int W = Simd<float>::W;
    Held held[R][C];
    slim::Index i = 0;
    for (; i + W <= n; i += W) {
        FloatVector row[R];
        SLIM_UNROLL
        for (int r = 0; r < R; ++r) row[r] = load<float>(a + r * width + i);
        SLIM_UNROLL
        for (int c = 0; c < C; ++c) {
            const FloatVector column = load<float>(b + c * width + i);
            SLIM_UNROLL
            for (int r = 0; r < R; ++r) held[r][c].take(row[r] + column, weights, i);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) {
            typename Held::Lane lane[W];
            std::memcpy(lane, &held[r][c].lanes, sizeof lane);
            double total = 0;
            for (const auto value : lane) total += static_cast<double>(value);
            for (slim::Index j = i; j < n; ++j)
                if (a[r * width + j] + b[c * width + j] > 0) total += weights ? static_cast<double>(weights[j]) : 1.0;
            counts[r * stride + c] += total;
        }
}

template <class Held>
void agreement_of(const float* a, slim::Index rows, const float* b, slim::Index columns, slim::Index n,
                  const float* weights, double* counts, slim::Index stride) {
    constexpr int R = kAgreementRows, C = kAgreementColumns;
    for (slim::Index from = 0; from < n; from += kStrip) {
        const slim::Index size = n - from < kStrip ? n - from : kStrip;
        const float* w = weights ? weights + from : nullptr;
        for (slim::Index c = 0; c < columns;) {
            const int wide = columns - c >= C ? C : 1;
            for (slim::Index r = 0; r < rows;) {
                const int high = rows - r >= R ? R : 1;
                const float *x = a + r * n + from, *y = b + c * n + from;
                double* to = counts + r * stride + c;
                if (wide > 1 && high > 1) agreement_tile<Held, R, C>(x, y, n, size, w, to, stride);
                else if (wide > 1) agreement_tile<Held, 1, C>(x, y, n, size, w, to, stride);
                else if (high > 1) agreement_tile<Held, R, 1>(x, y, n, size, w, to, stride);
                else agreement_tile<Held, 1, 1>(x, y, n, size, w, to, stride);
                r += high;
            }
            c += wide;
        }
    }
}

void agreement(const float* a, slim::Index rows, const float* b, slim::Index columns, slim::Index n,
               const float* weights, double* counts, slim::Index stride) {
    if (weights) agreement_of<Weighing>(a, rows, b, columns, n, weights, counts, stride);
    else agreement_of<Counting>(a, rows, b, columns, n, weights, counts, stride);
}

}  // namespace
