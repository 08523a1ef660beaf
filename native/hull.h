// The point of a convex hull that is nearest to the origin, by perceptron updates, with a bounded cache of kernel rows.
//
// Minimises ½ Σ α_i α_j y_i y_j H_ij over α ≥ 0, Σ α = 1, for signs y and H_ij = k(x_i, x_j) + 1 + ridge_i [i = j].
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "buffer.h"
#include "machine.h"

namespace slim {

// A cache of rows of H; new rows replace the least recently used ones.
class HullRows {
public:
    // Writes k(x_i, ·) + 1 for `count` rows i to [count][n]; returns how many of them are not finite.
    using Fill = std::function<Index(const Index* rows, Index count, double* out)>;
    static constexpr Index kTogether = 12;  // rows that take little longer together than one alone

    HullRows(Index n, const double* ridge, Index cache_bytes, Fill fill);
    HullRows(const HullRows&) = delete;

    Index size() const { return n_; }
    Index computed() const { return computed_; }
    bool holds(Index i) const { return slot_of_[i] >= 0; }
    bool is_roomy() const { return capacity_ >= 16 * kTogether; }
    // Row i, [n]; valid until two other rows have been requested. Throws std::domain_error if it is not finite.
    const double* row(Index i);
    // Computes rows that are not in the cache, at most kTogether.
    void compute(const Index* rows, Index count);

private:
    void to_front(Index slot);
    Index slot_for(Index i);
    double* at(Index slot);

    Index n_, capacity_, slab_rows_, computed_ = 0;
    std::vector<double> ridge_;
    Fill fill_;
    Buffer<double> fresh_;  // [kTogether][n], for rows whose slots are not adjacent
    std::vector<Buffer<double>> slabs_;  // [slab_rows][n] each: consecutive slots
    std::vector<Index> owner_, before_, after_;  // for each slot; the list is ordered from the latest to the oldest
    std::vector<Index> slot_of_;                 // [n], −1 if a row is not in the cache
    Index latest_ = -1, oldest_ = -1;
};

class Hull {
public:
    // α is scaled to sum to one.
    Hull(std::shared_ptr<HullRows> rows, const double* signs, const double* alpha);

    // Makes updates until the gap ‖W‖² − min D is at most tolerance · ‖W‖², and returns their number.
    // With `pairs`, weight moves from the vector with the largest margin (MDM), else from all vectors (SK).
    Index run(Index updates, double tolerance, bool pairs);
    // Recomputes D and ‖W‖² from α.
    void refresh();

    Index size() const { return rows_->size(); }
    double square() const { return square_; }
    double gap() const { return square_ - margins_[lowest_]; }
    const double* margins() const { return margins_.get(); }
    void write_alpha(double* out) const;

private:
    struct Run {
        Index begin, end;
        double sign;
    };

    bool toward();    // an update of Schlesinger and Kozinec; false if there is no gain
    bool exchange();  // an update of Mitchell, Demyanov and Malozemov
    void move(Move step);  // first and second are given without signs
    const double* fetch(Index l);
    void rescale();
    void find_support();

    std::shared_ptr<HullRows> rows_;
    std::vector<double> signs_;
    std::vector<Run> runs_;  // runs of equal signs: few if the samples are sorted by class
    std::vector<double> alpha_;  // times scale_
    double scale_ = 1.0, square_ = 0.0;
    Buffer<double> margins_;  // D
    Index lowest_ = 0;        // the position of the smallest D
    std::vector<Index> support_;  // the positions with α > 0, in any order; only maintained by `exchange`
};

}  // namespace slim
