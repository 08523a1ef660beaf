// Small dense systems of linear equations, for Newton's method on linear machines. Included once by each of
// native/isa/*.cpp (see simd.h on linkage), so that it must not use what the standard library compiles out of line.
#pragma once

#include <cmath>

#include "../plan.h"
#include "../simd.h"

namespace {

using slim::Index;

inline double greater_of(double a, double b) { return a > b ? a : b; }
inline double positive_part(double a) { return a <= 0.0 ? 0.0 : a; }  // NaN stays NaN

double dot(const double* a, const double* b, Index n) {
    constexpr int W = Simd<double>::W;
    Vec<double> sum = splat<double>(0.0);
    Index j = 0;
    for (; j + W <= n; j += W) sum = sum + load<double>(a + j) * load<double>(b + j);
    double total = lane_sum<double>(sum);
    for (; j < n; ++j) total += a[j] * b[j];
    return total;
}

// y += a x
void add_scaled(double a, const double* x, double* y, Index n) {
    constexpr int W = Simd<double>::W;
    Index j = 0;
    for (; j + W <= n; j += W) store<double>(y + j, load<double>(y + j) + splat<double>(a) * load<double>(x + j));
    for (; j < n; ++j) y[j] += a * x[j];
}

// The lower Cholesky factor of A [n][stride] in place; false if A is not positive definite.
bool cholesky(double* A, Index n, Index stride) {
    for (Index i = 0; i < n; ++i) {
        double* row = A + i * stride;
        for (Index j = 0; j < i; ++j) row[j] = (row[j] - dot(row, A + j * stride, j)) / A[j * stride + j];
        const double pivot = row[i] - dot(row, row, i);
        if (!(pivot > 0.0)) return false;
        row[i] = std::sqrt(pivot);
    }
    return true;
}

// x ← (L Lᵀ)⁻¹ x
void solve_factored(const double* L, double* x, Index n, Index stride) {
    for (Index i = 0; i < n; ++i) x[i] = (x[i] - dot(L + i * stride, x, i)) / L[i * stride + i];
    for (Index i = n; i-- > 0;) {
        x[i] /= L[i * stride + i];
        add_scaled(-x[i], L + i * stride, x, i);
    }
}

// λI + [Φ 1]ᵀ diag(e) [Φ 1], with b last and without λ, and its factor: `systems` and `factor` of optim/.
class NewtonSystem {
public:
    NewtonSystem(const slim::MarginOutput& o, double* room)
        : rows_(o.rows), n_(o.n), k_(o.features + 1), width_(o.width), A_(room), L_(room + k_ * width_) {}

    // The lower half, up to whole vectors, four rows at a time; rows with e_i = 0 are passed over.
    void gather(const double* e, double ridge, double more) {
        for (Index j = 0; j < k_ * width_; ++j) A_[j] = 0.0;
        const double* rows[4];
        double weights[4];
        int held = 0;
        for (Index i = 0; i < n_; ++i) {
            if (e[i] == 0.0) continue;
            rows[held] = rows_ + i * width_;
            weights[held++] = e[i];
            if (held == 4) add_four(rows, weights);
            held %= 4;
        }
        for (int k = held; k > 0 && k < 4; ++k) {
            rows[k] = rows[0];
            weights[k] = 0.0;
        }
        if (held > 0) add_four(rows, weights);
        for (Index a = 0; a + 1 < k_; ++a) A_[a * width_ + a] += ridge;
        double& last = A_[(k_ - 1) * width_ + k_ - 1];
        last += more * greater_of(1.0, last);
    }

    // The Cholesky factor with the least jitter that works; false if none does.
    bool factor() {
        double largest = 0.0, jitter = 0.0;
        for (Index a = 0; a < k_; ++a) largest = greater_of(largest, A_[a * width_ + a]);
        for (int turn = 0; turn < 12; ++turn) {
            for (Index j = 0; j < k_ * width_; ++j) L_[j] = A_[j];
            for (Index a = 0; a < k_; ++a) L_[a * width_ + a] += jitter;
            if (cholesky(L_, k_, width_)) return true;
            jitter = greater_of(10.0 * jitter, slim::kSmallest * largest);
        }
        return false;
    }

    void solve(double* x) const { solve_factored(L_, x, k_, width_); }

private:
    void add_four(const double* const* rows, const double* weights) {
        constexpr int W = Simd<double>::W;
        for (Index a = 0; a < k_; ++a) {
            Vec<double> factors[4];
            for (int k = 0; k < 4; ++k) factors[k] = splat<double>(weights[k] * rows[k][a]);
            double* out = A_ + a * width_;
            for (Index j = 0; j <= a; j += W) {
                Vec<double> sum = load<double>(out + j);
                for (int k = 0; k < 4; ++k) sum = sum + factors[k] * load<double>(rows[k] + j);
                store<double>(out + j, sum);
            }
        }
    }

    const double* rows_;
    Index n_, k_, width_;
    double *A_, *L_;
};

// f = [Φ 1] x for every copy of every row
void scores(const slim::MarginOutput& o, const double* x, double* f) {
    for (Index i = 0; i < o.n; ++i) {
        const double value = dot(o.rows + i * o.width, x, o.width);
        for (Index k = 0; k < o.copies; ++k) f[k * o.n + i] = value;
    }
}

}  // namespace
