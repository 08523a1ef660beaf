// Steps of mini-batches: the loss of a batch of rows, its gradients, and the moves that they cause, in single precision.
// `Descent` of methods/large_margin/descent.py has the same in NumPy, and says what is minimised.
//
// Symbols: B rows of a batch, d features, p mapped features, m vectors, q outputs. W lanes of a vector, R rows of a
// tile, V vectors of a panel.
//
// The vectors are columns, stored in *slots*: slot m has the kernel value 1, so its coefficient is the intercept, and
// the slots after it, which fill the last vector of lanes, have the value 0. A matrix [n][columns] in *panels* has its
// columns in groups of V vectors, each of which is stored row by row: panel[row][V W]. The last panel may be narrower.
// A matrix in *tiles* has its columns in groups of R, each stored row by row: tile[row][R]. Products read one matrix in
// tiles and another in panels, and keep R × V vectors of sums in registers.
//
// A step has two phases. Tasks of the first are blocks of rows: map, kernel values, losses, and the weights S of the
// gradients. Tasks of the second are panels of vectors, tiles of the map's features, and panels of coefficients: the
// gradients and the moves. Every number is computed by one task, in a fixed order, so that it does not depend on the
// number of threads.
#pragma once

#include "plan.h"

namespace slim {

enum class StepMap { none, diagonal, projection };

constexpr Index kStepRows = 32;             // of a task of the first phase
constexpr float kMomentum = 0.1f;           // 1 − MOMENTUM of descent.py
constexpr float kSquares = 0.001f;          // 1 − SQUARES
constexpr float kLeastRoot = 1e-8f;         // LEAST_ROOT
constexpr float kNever = -300.0f;           // an exponent of 2 whose power is 0

struct StepShape {
    Index d, p, m, q, copies;
    StepMap map;
    int power;     // of ξ: 1 or 2
    double gamma;  // of the kernel exp(−γ‖p − z‖²)
    float smooth;  // half the width over which the corner of a loss of power 1 is rounded, or 0
};

// Rows to learn from: X [n][d], dense in one of two precisions or as a CSR matrix, from which `centre` [d] is
// subtracted if it is not null; and sign, offset and cost [copies n][q].
struct StepRows {
    const void* x;
    bool in_float;
    const std::int32_t* columns;  // of a CSR matrix, else null
    const Index* starts;
    const double* centre;
    Index n;
    const float *sign, *offset, *cost;
};

// Lengths of the moves: a full step of Adam on the vectors and on each feature of the map, and λ and h of every output.
struct StepScales {
    float vectors_unit, vectors_rate, map_rate, newton_rate;
    const float* map_unit;  // [d]
    const float *ridge, *tilt;
    // The penalty on a map, scale · min over t of Σ_j weights_j ‖a_j − t start_j‖², if start is not null.
    const float *pull_start, *pull_weights;
    float pull_scale;
};

// What the tasks of a step read and write. Matrices are in panels over slots unless another shape is named.
struct Step {
    StepShape shape;
    StepScales scales;
    Index vectors;    // of lanes, for the m + 1 slots
    Index p_vectors;  // of lanes, for p columns
    Index rows, own;     // of the batch, and vectors that are rows of the penalty; rounded up to whole tiles below
    Index rows_up, all;  // all rows: rows_up and own
    Index first_own;
    bool moves;  // or only the loss and its gradient by the coefficients are wanted
    bool bends;  // or, instead of gradients, the curvature
    float damping;  // the least weight of a row in the curvature
    const StepRows* given;
    const Index* order;  // [rows]

    float *z, *z_mean, *z_square;  // [p] rows each
    float* z_rows;                 // panels over p, [slots] rows; only with a map
    float *a, *a_mean, *a_square;  // a projection: panels over p, [d] rows; a diagonal: [d]
    float* pull_start;             // like a
    float pull_t;
    float* coef;       // [vectors][q][W]
    float* coef_mean;  // tiles over q, [m + 1] rows
    float* inverse;    // of the curvature: panels, [m + 1] rows
    float *gain, *bias, *slope;  // [vectors W]

    float* s;           // kernel values, then S: panels, [all] rows
    float* p_tiles;     // P: tiles over p, [all] rows
    float* x_tiles;     // X: tiles over d, [rows_up] rows; only with a projection
    float* by_p;        // ∂/∂P: panels over p, [rows_up] rows; only with a projection
    float* by_coef;     // [blocks][vectors][q][W]
    float* by_scale;    // ∂/∂a of a diagonal: [blocks][d]
    float* f_tiles;     // weighted kernel values: tiles over slots, [all] rows; only for the curvature
    float* bend;        // the upper half of the curvature: [m + 1][vectors W]
    double* loss;       // [blocks]: of rows, and of the penalty
    float* by_z;        // ∂/∂Z: panels, [p] rows; not null if gradients are wanted instead of moves
    float* by_a;        // ∂/∂A of a projection: panels over p, [d] rows
    float share, calm;  // of the full steps: of vectors and map, and of coefficients
    float mean_part, square_part;  // 1 / (1 − MOMENTUM^n) and 1 / (1 − SQUARES^n)
};

// What a thread writes on, in numbers of float.
struct StepRoom {
    float *x, *x_tiles, *p, *p_tiles, *norms, *lanes, *f, *totals;
};

// The tasks of one instruction set.
struct StepKernels {
    int lanes, tile, panel;  // W, R and V
    // The rows [begin, end) of the batch, or of the penalty for begin ≥ rows_up, as block `block`.
    void (*rows)(const Step&, Index begin, Index end, Index block, const StepRoom&);
    void (*vectors)(const Step&, Index panel);
    void (*measure)(const Step&, Index panel);  // biases of vectors; `vectors` does it, too
    void (*map)(const Step&, Index tile);
    void (*coefficients)(const Step&, Index panel);
    void (*bend)(const Step&, Index panel);  // adds what the rows give to a panel of the curvature
    Index (*room)(const Step&);                       // numbers that a StepRoom needs
    StepRoom (*place)(const Step&, float* numbers);  // aligned to 64 bytes
};

}  // namespace slim
