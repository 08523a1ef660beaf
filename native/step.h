// The state of a descent in mini-batches, and its steps (step_plan.h).
#pragma once

#include <vector>

#include "buffer.h"
#include "step_plan.h"

namespace slim {

// The state of a descent. Arrays go in and out row by row: vectors (m, p), map (p, d) or (d,), coefficients (m + 1, q).
class Steps {
public:
    Steps(const StepShape& shape, const StepScales& scales);

    void write_vectors(const float* z, const float* mean, const float* square);
    void read_vectors(float* z, float* mean, float* square) const;
    void write_map(const float* a, const float* mean, const float* square);
    void read_map(float* a, float* mean, float* square) const;
    void write_coefficients(const float* w, const float* mean);
    void read_coefficients(float* w, float* mean) const;
    void write_inverse(const float* inverse);  // (m + 1, m + 1)

    // Makes `count` steps, each on `batch` rows of `order`, of which the first has number `done` + 1, with shares of the
    // full rates. `own` vectors are rows of the penalty in each step. Returns the sum of the objectives.
    double run(const StepRows& rows, const Index* order, Index batch, Index count, Index own, Index done,
               const double* calm, const double* warm, int threads);

    // The sum of the losses of all rows, and its gradient (m + 1, q) by the coefficients, without penalty and tilt.
    // With `smooth` > 0, the corner of the hinge is rounded over twice that width.
    double evaluate(const StepRows& rows, double* gradient, float smooth, int threads);

    // The same, and the gradients by the vectors (m, p) and the map (p, d) or (d,).
    double gradients(const StepRows& rows, double* by_coef, double* by_z, double* by_a, float smooth, int threads);

    // The curvature (m + 1, m + 1) of the losses: 2/n Σ_i a_i F_iF_iᵀ over the rows, where a_i is the mean cost of the
    // outputs at which a row has a loss, and at least `damping`.
    void curvature(const StepRows& rows, double damping, float* out, int threads);

    bool is_finite() const;

    const StepShape& shape() const { return step_.shape; }

private:
    void make_room(Index batch, Index own, int threads);
    double finish_rows();
    double add_rows(double* by_coef) const;
    void add_vectors(double* by_z) const;
    void add_map(double* by_a) const;
    double pull();
    void move_scales();
    float* numbers(Index n);

    const StepKernels& kernels_;
    Step step_{};
    std::vector<Buffer<float>> held_, working_;
    Buffer<double> losses_;
    Buffer<float> rooms_;
    Index blocks_ = 0, room_ = 0, batch_ = -1, own_ = -1;
    int threads_ = 0;
};

}  // namespace slim
