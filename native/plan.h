// A machine packed for evaluation, as the instruction-set kernels (native/isa) read it.
//
// Symbols: n rows, p features, m points, W lanes of a vector, G blocks of the head, q coefficients per point.
// The points are stored in *slots*: every block of the head is padded to whole vectors of W slots. Pairs of vectors form
// panels, stored feature by feature: panels[panel][feature][2 W]. A last vector without a partner is a panel of W.
#pragma once

#include <cstdint>

namespace slim {

using Index = std::int64_t;

// How u, the argument of the kernel function, is computed from a row x and a point z.
enum class Form {
    dot,        // u = x·z′ + gain ‖x‖² + bias, with points scaled in advance
    square,     // u = gain · Σ (x − z)²
    manhattan,  // u = gain · Σ |x − z|
};

// The kernel as a function of u.
enum class Function { exp2, identity, power, real_power, tanh };

template <class T>
struct Packed {
    Form form;
    Function function;
    double degree;        // of power and real_power
    Index p;              // features
    Index m;              // points
    Index vectors;        // of W slots each
    Index q;              // coefficients per point; 0: kernel values instead of sums
    Index blocks;         // G
    const T* centre;      // [p], subtracted from every row; it is already subtracted from the points
    const T* panels;      // as above
    const T* bias;        // [vectors W]
    const T* gain;        // [vectors W]
    const T* coef;        // [vectors][q][W], zero in padding
    const Index* block;   // [vectors], the head's block of each vector
    // A mirror head stores its sites in layers, vector by vector: a point is in one layer per site. Null for other heads.
    const Index* layers;  // [vectors + 1], the first layer of each vector; coef is then [layers][q][W]
    const T* scale;       // [layers][W], −2β
    const T* square;      // [layers][W]: d² = scale · k + square + k(x, x), or scale · (k − 1) + square if k(x, x) is 1
    T own_gain, own_bias;  // u for k(x, x) is own_gain ‖x‖² + own_bias
    // Look-ups: the share of u that the coordinates of a look-up's row have, for every point. Null if there are none.
    const T* table;       // [rows of all look-ups][vectors W]; with distances, not yet multiplied by the gain
    const T* few;         // with at most four features and one output, [m][p + 3]: z, bias, gain, coefficient; with
                          // early exit, whatever the features, without coefficients; else null
};

// A block of rows, packed by `pack`. Either in tiles of R rows, feature by feature: tile[feature][R]; tiles have
// `tile_rows`, then 4, then 1 rows, and the tile that starts at row r is at packed + r p. Or in lanes, [p][n rounded up
// to `lane_rows`], which `sums` reads if the plan has `few`.
template <class T>
struct Rows {
    const T* packed;
    const T* norms;  // ‖x‖² of each row
    Index n;
    bool in_lanes;
    const std::int32_t* codes = nullptr;  // [n][lookups], rows of the plan's table; their shares are added to u
    Index lookups = 0;
};

// A row in coordinate form.
template <class T>
struct SparseRow {
    const T* values;
    const std::int32_t* columns;
    Index n;
    T norm;
};

// The kernels of one instruction set. They add to `sums` [n][G][q], and write `values` [n][m].
template <class T>
struct Kernels {
    int lanes;      // W
    int tile_rows;  // R of the main tile
    int lane_rows;  // rows that lanes are rounded up to
    void (*sums)(const Packed<T>&, const Rows<T>&, T* scratch, double* sums);
    void (*values)(const Packed<T>&, const Rows<T>&, T* scratch, T* values);
    void (*wide_values)(const Packed<T>&, const Rows<T>&, T* scratch, double* values);
    // Writes the sums over features of one sparse row and all panels to u[vectors W].
    void (*sparse_arguments)(const Packed<T>&, const SparseRow<T>&, T* u);
    // Computes the sums of one row from its arguments, or values if the plan has no head.
    void (*finish)(const Packed<T>&, const T* u, T* scratch, double* out);
    // Packs row-major rows [n][p] for `sums` and `values`, and writes their norms.
    void (*pack)(const Packed<T>&, const T* rows, Index n, bool in_lanes, T* packed, T* norms);
    // 2^u over an array, in place: the speed of the exponential alone.
    void (*exp2_array)(T* values, Index n);
    // Early exit (isa/stages.h): kernel values to keep, of one row in a tile and of rows in lanes, and sums over them.
    void (*keep)(const Packed<T>&, const Rows<T>& row, T* scratch, T* kept);
    void (*stage_sums)(const T* kept, const T* coef, Index vectors, Index q, T* out);
    void (*keep_in_lanes)(const Packed<T>&, const T* packed, const T* norms, Index n, Index stride, Index begin,
                          Index end, T* kept);
    void (*judge)(const T* kept, Index stride, Index n, const T* coef, Index step, Index m, const T* intercept, Index q,
                  T upper, T lower, T* scores, std::uint64_t* sure);
    void (*move_up)(T* arrays, Index count, Index stride, const std::uint64_t* alive, Index n);

    // Scratch for a block of n rows, in values of T; it must be aligned to 64 bytes.
    Index scratch(Index n, Index q) const { return (2 * (n > 4 ? n : 4) + n * q) * lanes; }
};

// A step of a point of a hull: D_j ← keep D_j + first row_j + second other_j.
struct Move {
    double keep, first;
    const double* row;
    double second;
    const double* other;
};

// counts[r][stride]: for each of the rows a[r][n] and of the columns b[c][n], the sum of weights[i] (1 each where null)
// over a[r][i] + b[c][i] > 0. It is added to.
using Agreement = void (*)(const float* a, Index rows, const float* b, Index columns, Index n, const float* weights,
                           double* counts, Index stride);

// One output of a problem of optim/margin.py (see margin.h), and where its search stands: x holds w, b and zeros.
struct MarginOutput {
    const double* rows;  // [n][width]: features, a one whose weight is b, and zeros
    Index n, features, copies, width;
    const double *sign, *offset, *cost;  // [copies * n]
    double ridge, tilt, least;
    double *x, *f, *alpha, *s, *t;  // x [width], the others [copies * n]
    double* room;
    double value, gap;
    Index n_iter;
};

// The numbers in the room of an output: two systems, three vectors like x, and ten like alpha.
constexpr Index margin_room(Index features, Index width, Index all) {
    return 2 * (features + 1) * width + 3 * width + 10 * all;
}

// Searches until the gap is small; false if it did not get there within so many iterations.
using MarginSolver = bool (*)(MarginOutput&, double tolerance, Index most);

constexpr double kSmallest = 1e-14;                         // SMALLEST of optim/linear.py
constexpr double kBackOff = 0.995;                          // BACK_OFF of optim/margin.py
constexpr double kTiny = 1e-300, kBelow = 1.0 - 0x1p-52;  // TINY and BELOW

struct StepKernels;  // step_plan.h

struct InstructionSet {
    const char* name;
    Kernels<float> f32;
    Kernels<double> f64;
    // Updates the margins D [n], and returns the position of the smallest, the first of equals.
    Index (*move)(const Move&, double* margins, Index n);
    Agreement agreement;
    MarginSolver hinge, squared_hinge;
    const StepKernels* step;
};

extern const InstructionSet baseline;
#if defined(SLIM_X86_SETS)
extern const InstructionSet avx2;
extern const InstructionSet avx512;
#endif

// The best instruction set of this processor, or the one named in SLIMSVM_INSTRUCTION_SET. If the name is unknown or the
// processor lacks it, the result is baseline; `_core.py` compares the names and raises an error.
const InstructionSet& best_instruction_set();

}  // namespace slim
