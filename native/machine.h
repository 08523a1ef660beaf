// A kernel machine packed for one precision, and its evaluation over many rows on several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plan.h"

namespace slim {

// Early exit; see stages.h. With n = 0 there is none.
struct StageDescription {
    Index n;                 // stages
    Index q;                 // outputs
    const Index* sizes;      // [n], the number of points of each stage, increasing; the last is m
    const double* coef;      // [m][n q], zero beyond a stage's points
    const double* intercept;  // [n q]
    const double* upper;     // [n − 1]; with several outputs, the lead
    const double* lower;     // [n − 1], or null with several outputs
    bool counts;             // whether to return kernel evaluations instead of scores
};

// The description of a machine by the caller; only needed during construction.
struct Description {
    std::string kernel;  // "rbf", "laplacian", "poly", "linear" or "sigmoid"
    double coef0;
    double degree;
    Index m, p;              // points, features of the points
    const double* points;    // [m][p], or null for sparse points
    const double* values;    // sparse points in CSR form, column indices sorted within a row
    const Index* columns;
    const Index* starts;     // [m + 1]
    const double* gammas;    // [m]
    Index q;                 // coefficients per point; 0: return kernel values
    const double* coef;      // [m][q]
    Index sites = 0;             // of a mirror head, which has coef [sites][q] and one block; 0 for other heads
    const Index* site_points;    // [sites]
    const double* site_scales;   // [sites], β
    const double* site_squares;  // [sites], (1 − β)² if k(x, x) = 1, else β² k(z, z)
    const double* start;     // [G q], or [m] without coefficients: added to the outputs; null: zero
    Index blocks;            // G
    const Index* block_sizes;  // [G]
    Index d;                 // features of the data; p unless there is a matrix map
    const double* shift;     // [d], or null: x → A (x − shift) + offset
    const double* scale;     // [d] if diagonal, else [p][d]
    const double* offset;    // [p]
    bool diagonal;
    Index table_rows = 0;        // of all look-ups together
    const double* table = nullptr;  // [table_rows][m], their shares of x·z, ‖x − z‖² or ‖x − z‖₁; null if there are none
    bool sparse_rows;        // rows are in CSR form, so they are not centred
    StageDescription stages;  // with these, q is 0 and the outputs are [n][stages.q], or [n][1] counts
};

struct DenseRows {
    const void* data;  // [n][d], C-contiguous
    bool is_float;
    Index n;
    const std::int32_t* codes = nullptr;  // [n][lookups], rows of the table
    Index lookups = 0;
};

struct CsrRows {
    const void* data;
    bool is_float;
    const std::int32_t* columns;
    const Index* starts;  // [n + 1]
    Index n, stored;      // entries in data and columns
};

class Machine {
public:
    virtual ~Machine() = default;
    // Fills out, [n][G][q] or [n][m] kernel values. Rows with NaN or infinity, or whose squares or outputs overflow, get
    // NaN as their first output; returns their number. Throws std::invalid_argument for a malformed CSR matrix.
    virtual Index run(const DenseRows& rows, double* out, int threads) const = 0;
    virtual Index run(const CsrRows& rows, double* out, int threads) const = 0;
    // Fills out with kernel values [n][m] in the precision of the machine.
    virtual Index values(const DenseRows& rows, void* out, int threads) const = 0;
    virtual bool is_float() const = 0;
};

std::unique_ptr<Machine> make_machine(const Description& description, bool in_float);

// Seconds per value of 2^u over an array in the first-level cache.
double exp2_seconds(bool in_float, int repeats);

}  // namespace slim
