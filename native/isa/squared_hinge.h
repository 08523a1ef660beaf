// Newton's method for a linear machine with the squared hinge: `_PrimalNewton` of optim/margin.py for one output.
#pragma once

#include "linear.h"

namespace {

class SquaredHinge {
public:
    explicit SquaredHinge(slim::MarginOutput& o)
        : o_(o), all_(o.n * o.copies), system_(o, o.room), gradient_(o.room + 2 * (o.features + 1) * o.width),
          step_(gradient_ + o.width), d_f_(step_ + o.width), e_(d_f_ + all_) {}

    bool solve(double tolerance, Index most) {
        scores(o_, o_.x, o_.f);
        while (o_.n_iter < most) {
            ++o_.n_iter;
            weigh();
            if (o_.gap <= tolerance * greater_of(std::fabs(o_.value), o_.least)) return true;
            system_.gather(e_, o_.ridge, slim::kSmallest);
            if (!system_.factor()) return false;
            for (Index j = 0; j < o_.width; ++j) step_[j] = -gradient_[j];
            system_.solve(step_);
            scores(o_, step_, d_f_);
            const double far = line();
            add_scaled(far, step_, o_.x, o_.width);
            add_scaled(far, d_f_, o_.f, all_);
        }
        return false;
    }

private:
    // The value, its gradient, a bound on the duality gap, and the weights e of the active rows.
    void weigh() {
        const Index r = o_.features;
        for (Index j = 0; j < o_.width; ++j) gradient_[j] = j < r ? o_.ridge * o_.x[j] : 0.0;
        gradient_[r] = o_.tilt;
        double loss = 0.0, size = 0.0;
        for (Index i = 0; i < o_.n; ++i) {
            double sum = 0.0, e = 0.0;
            for (Index j = i; j < all_; j += o_.n) {
                const double short_of = o_.offset[j] - o_.sign[j] * o_.f[j], xi = positive_part(short_of);
                o_.alpha[j] = 2.0 * o_.cost[j] * xi;
                loss += o_.cost[j] * xi * xi;
                size += o_.alpha[j];
                sum += o_.sign[j] * o_.alpha[j];
                e += xi > 0.0 ? 2.0 * o_.cost[j] : 0.0;
            }
            e_[i] = e;
            if (sum != 0.0) add_scaled(-sum, o_.rows + i * o_.width, gradient_, o_.width);
        }
        o_.value = 0.5 * o_.ridge * dot(o_.x, o_.x, r) + o_.tilt * o_.x[r] + loss;
        o_.gap = 0.5 * dot(gradient_, gradient_, r) / o_.ridge +
                 std::fabs(gradient_[r]) / greater_of(size, 1e-300) * std::fabs(o_.value);
    }

    // The length of the step that minimises along it.
    double line() const {
        const Index r = o_.features;
        const double linear = o_.ridge * dot(o_.x, step_, r) + o_.tilt * step_[r];
        const double square = o_.ridge * dot(step_, step_, r);
        double low = 0.0, high = HUGE_VAL, far = 1.0;
        for (int turn = 0; turn < 50; ++turn) {
            double slope = linear + far * square, bend = square;
            for (Index i = 0; i < all_; ++i) {
                const double rate = o_.sign[i] * d_f_[i];
                const double xi = o_.offset[i] - o_.sign[i] * o_.f[i] - far * rate;
                if (xi > 0.0) {
                    slope -= 2.0 * o_.cost[i] * rate * xi;
                    bend += 2.0 * o_.cost[i] * rate * rate;
                }
            }
            (slope < 0.0 ? low : high) = far;
            double onward = bend > 0.0 ? far - slope / bend : 2.0 * far;
            if (!(low < onward && onward < high)) onward = high < HUGE_VAL ? 0.5 * (low + high) : 2.0 * far;
            if (std::fabs(onward - far) <= 1e-9 * far) break;
            far = onward;
        }
        return far;
    }

    slim::MarginOutput& o_;
    Index all_;
    NewtonSystem system_;
    double *gradient_, *step_, *d_f_, *e_;
};

bool squared_hinge(slim::MarginOutput& o, double tolerance, Index most) {
    return SquaredHinge(o).solve(tolerance, most);
}

}  // namespace
