// The interior point method for a linear machine with the hinge: `_InteriorPoint` of optim/margin.py for one output.
#pragma once

#include "linear.h"

namespace {

class InteriorPoint {
public:
    explicit InteriorPoint(slim::MarginOutput& o)
        : o_(o), all_(o.n * o.copies), system_(o, o.room), toward_(o.room + 2 * (o.features + 1) * o.width),
          aimed_(toward_ + o.width), step_(aimed_ + o.width), E_(step_ + o.width), short_(E_ + all_),
          d_f_(short_ + all_), d_alpha_(d_f_ + all_), d_s_(d_alpha_ + all_), d_t_(d_s_ + all_), rho_(d_t_ + all_),
          by_s_(rho_ + all_), by_t_(by_s_ + all_), e_(by_t_ + all_) {}

    bool solve(double tolerance, Index most) {
        while (o_.n_iter < most) {
            ++o_.n_iter;
            weigh();
            if (o_.gap <= tolerance * greater_of(std::fabs(o_.value), o_.least)) return true;
            system_.gather(e_, o_.ridge, 0.0);
            if (!system_.factor()) return false;
            predict();
            correct();
        }
        return false;
    }

private:
    // E, the shortfalls, Σ σα and Σ σE·short times the rows, the value and the gap.
    void weigh() {
        double loss = 0.0, size = 0.0, dual = 0.0;
        for (Index j = 0; j < all_; ++j) {
            const double alpha = o_.alpha[j];
            E_[j] = 1.0 / (o_.s[j] / alpha + o_.t[j] / (o_.cost[j] - alpha));
            short_[j] = o_.offset[j] - o_.sign[j] * o_.f[j];
            loss += o_.cost[j] * positive_part(short_[j]);
            size += alpha;
            dual += o_.offset[j] * alpha;
        }
        sum_rows(o_.alpha, nullptr, toward_);
        sum_rows(E_, short_, aimed_);
        for (Index i = 0; i < o_.n; ++i) {
            e_[i] = 0.0;
            for (Index j = i; j < all_; j += o_.n) e_[i] += E_[j];
        }
        const Index r = o_.features;
        const double unbalanced = o_.tilt - toward_[r];
        dual -= 0.5 * dot(toward_, toward_, r) / o_.ridge;
        o_.value = 0.5 * o_.ridge * dot(o_.x, o_.x, r) + o_.tilt * o_.x[r] + loss;
        o_.gap = positive_part(o_.value - dual - o_.x[r] * unbalanced) +
                 std::fabs(unbalanced) / size * std::fabs(o_.value);
    }

    // out ← Σ_j σ_j a_j c_j [φ_j 1], with c = 1 if it is null
    void sum_rows(const double* a, const double* c, double* out) const {
        for (Index j = 0; j < o_.width; ++j) out[j] = 0.0;
        for (Index i = 0; i < o_.n; ++i) {
            double sum = 0.0;
            for (Index j = i; j < all_; j += o_.n) sum += o_.sign[j] * a[j] * (c ? c[j] : 1.0);
            add_scaled(sum, o_.rows + i * o_.width, out, o_.width);
        }
    }

    void predict() {
        move(short_, aimed_, false);
        const double far = longest();
        double mu = 0.0, ahead = 0.0;
        for (Index j = 0; j < all_; ++j) {
            const double above = o_.cost[j] - o_.alpha[j];
            mu += o_.alpha[j] * o_.s[j] + above * o_.t[j];
            ahead += (o_.alpha[j] + far * d_alpha_[j]) * (o_.s[j] + far * d_s_[j]) +
                     (above - far * d_alpha_[j]) * (o_.t[j] + far * d_t_[j]);
        }
        const double share = ahead / mu, centre = share * share * share * mu / (2.0 * static_cast<double>(all_));
        for (Index j = 0; j < all_; ++j) {
            by_s_[j] = d_alpha_[j] * d_s_[j] - centre;
            by_t_[j] = -d_alpha_[j] * d_t_[j] - centre;
            rho_[j] = short_[j] + by_t_[j] / (o_.cost[j] - o_.alpha[j]) - by_s_[j] / o_.alpha[j];
        }
    }

    void correct() {
        sum_rows(E_, rho_, aimed_);
        move(rho_, aimed_, true);
        const double longest_step = slim::kBackOff * longest(), far = longest_step < 1.0 ? longest_step : 1.0;
        add_scaled(far, step_, o_.x, o_.width);
        add_scaled(far, d_f_, o_.f, all_);
        add_scaled(far, d_s_, o_.s, all_);
        add_scaled(far, d_t_, o_.t, all_);
        for (Index j = 0; j < all_; ++j) {  // rounding must not reach the bounds
            const double most = slim::kBelow * o_.cost[j];
            const double alpha = greater_of(o_.alpha[j] + far * d_alpha_[j], slim::kTiny);
            o_.alpha[j] = alpha < most ? alpha : most;
        }
    }

    // The moves of x, f, α, s and t for ρ; `aimed` is Σ σEρ times the rows.
    void move(const double* rho, const double* aimed, bool second) {
        for (Index j = 0; j < o_.width; ++j)
            step_[j] = toward_[j] + aimed[j] - (j < o_.features ? o_.ridge * o_.x[j] : 0.0);
        step_[o_.features] -= o_.tilt;
        system_.solve(step_);
        scores(o_, step_, d_f_);
        for (Index j = 0; j < all_; ++j) {
            const double d_alpha = E_[j] * (rho[j] - o_.sign[j] * d_f_[j]);
            const double by_s = second ? by_s_[j] : 0.0, by_t = second ? by_t_[j] : 0.0;
            d_alpha_[j] = d_alpha;
            d_s_[j] = -o_.s[j] - (by_s + o_.s[j] * d_alpha) / o_.alpha[j];
            d_t_[j] = -o_.t[j] + (o_.t[j] * d_alpha - by_t) / (o_.cost[j] - o_.alpha[j]);
        }
    }

    // The longest step before α, u − α, s or t reaches zero, at most 1.
    double longest() const {
        double ratio = 1e-300;
        for (Index j = 0; j < all_; ++j) {
            const double above = o_.cost[j] - o_.alpha[j];
            const double of_alpha = greater_of(-d_alpha_[j] / o_.alpha[j], d_alpha_[j] / above);
            const double of_slack = greater_of(-d_s_[j] / o_.s[j], -d_t_[j] / o_.t[j]);
            ratio = greater_of(ratio, greater_of(of_alpha, of_slack));
        }
        return ratio > 1.0 ? 1.0 / ratio : 1.0;
    }

    slim::MarginOutput& o_;
    Index all_;
    NewtonSystem system_;
    double *toward_, *aimed_, *step_, *E_, *short_, *d_f_, *d_alpha_, *d_s_, *d_t_, *rho_, *by_s_, *by_t_, *e_;
};

bool hinge(slim::MarginOutput& o, double tolerance, Index most) { return InteriorPoint(o).solve(tolerance, most); }

}  // namespace
