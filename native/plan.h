// A machine packed for evaluation: what the instruction-set kernels (native/isa) read, and nothing else.
//
// Symbols: n rows, p features, m points, W lanes of a vector, G blocks of the head, q coefficients per point.
// The points lie in *slots*: every block of the head is padded to whole vectors of W slots. Vectors lie in pairs, the
// panels, feature by feature: panels[panel][feature][2 W]; a last vector without a partner makes a panel of W.
#pragma once

#include <cstdint>

namespace slim {

using Index = std::int64_t;

// How u, the kernel function's argument, is made of a row x and a point z.
enum class Form {
    dot,        // u = x·z′ + gain ‖x‖² + bias, the points scaled beforehand
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
    Index q;              // coefficients per point; 0: kernel values are wanted, not sums
    Index blocks;         // G
    const T* centre;      // [p], taken from every row before it meets the points (which lack it already)
    const T* panels;      // as above
    const T* bias;        // [vectors W]
    const T* gain;        // [vectors W]
    const T* coef;        // [vectors][q][W], zero in padding
    const Index* block;   // [vectors], the head's block of each vector
    // A head of distances has its sites in layers, vector by vector: a point is in as many as it has sites. Otherwise null.
    const Index* layers;  // [vectors + 1], where the layers of each vector begin; coef is [layers][q][W] then
    const T* scale;       // [layers][W], −2β
    const T* square;      // [layers][W]: d² = scale · k + square + k(x, x), or scale · (k − 1) + square if k(x, x) is 1
    T own_gain, own_bias;  // u of x against itself is own_gain ‖x‖² + own_bias
    const T* few;         // with at most four features and one output, [m][p + 3]: z, bias, gain, coefficient; with
                          // early exit, whatever the features, without coefficients; else null
};

// A block of rows as `pack` leaves it. In tiles of R rows, feature by feature: tile[feature][R]; tiles have `tile_rows`,
// then 4, then 1 rows, and the one that starts at row r lies at packed + r p. Or in lanes, [p][n rounded up to
// `lane_rows`], which `sums` takes where the plan has `few`.
template <class T>
struct Rows {
    const T* packed;
    const T* norms;  // ‖x‖² of each row
    Index n;
    bool in_lanes;
};

// A row in coordinate form.
template <class T>
struct SparseRow {
    const T* values;
    const std::int32_t* columns;
    Index n;
    T norm;
};

// The kernels of one instruction set. `sums` is [n][G][q] and is added to; `values` is [n][m].
template <class T>
struct Kernels {
    int lanes;      // W
    int tile_rows;  // R of the main tile
    int lane_rows;  // rows that lanes are rounded up to
    void (*sums)(const Packed<T>&, const Rows<T>&, T* scratch, double* sums);
    void (*values)(const Packed<T>&, const Rows<T>&, T* scratch, T* values);
    void (*wide_values)(const Packed<T>&, const Rows<T>&, T* scratch, double* values);
    // One sparse row's sums over features against panels, into u[vectors W].
    void (*sparse_arguments)(const Packed<T>&, const SparseRow<T>&, T* u);
    // The rest of the way for one row: sums, or values where the plan has no head.
    void (*finish)(const Packed<T>&, const T* u, T* scratch, double* out);
    // Row-major rows [n][p] to the layout that `sums` and `values` read; writes the norms too.
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

struct InstructionSet {
    const char* name;
    Kernels<float> f32;
    Kernels<double> f64;
    // Moves the margins D [n]; the place of the smallest, the first of equals.
    Index (*move)(const Move&, double* margins, Index n);
    Agreement agreement;
};

extern const InstructionSet baseline;
#if defined(SLIM_X86_SETS)
extern const InstructionSet avx2;
extern const InstructionSet avx512;
#endif

// The best instruction set that this processor has; SLIMSVM_INSTRUCTION_SET names another one.
const InstructionSet& best_instruction_set();

}  // namespace slim
