// The point of a convex hull that is nearest to the origin, by perceptron updates; kernel rows in a bounded cache.
//
// Minimises ½ Σ α_i α_j y_i y_j H_ij over α ≥ 0, Σ α = 1, for signs y and H_ij = k(x_i, x_j) + 1 + ridge_i [i = j].
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "buffer.h"
#include "machine.h"

namespace slim {

// Rows of H, the least recently used of which make place for new ones.
class HullRows {
public:
    // k(x_i, ·) + 1 of `count` rows i into [count][n]; how many of them are not finite.
    using Fill = std::function<Index(const Index* rows, Index count, double* out)>;
    static constexpr Index kTogether = 12;  // rows that cost little more together than one alone

    HullRows(Index n, const double* ridge, Index cache_bytes, Fill fill);
    HullRows(const HullRows&) = delete;

    Index size() const { return n_; }
    Index computed() const { return computed_; }
    bool holds(Index i) const { return slot_of_[i] >= 0; }
    bool is_roomy() const { return capacity_ >= 16 * kTogether; }
    // Row i, [n]; valid until another row but one has been asked for. Throws std::domain_error if it is not finite.
    const double* row(Index i);
    // Computes rows that are not held, at most kTogether.
    void compute(const Index* rows, Index count);

private:
    void to_front(Index slot);
    Index slot_for(Index i);
    double* at(Index slot);

    Index n_, capacity_, slab_rows_, computed_ = 0;
    std::vector<double> ridge_;
    Fill fill_;
    Buffer<double> fresh_;  // [kTogether][n], rows whose slots are not beside each other
    std::vector<Buffer<double>> slabs_;  // [slab_rows][n] each: one slot after another
    std::vector<Index> owner_, before_, after_;  // of each slot; the list runs from the latest to the oldest
    std::vector<Index> slot_of_;                 // [n], −1 where a row is not held
    Index latest_ = -1, oldest_ = -1;
};

class Hull {
public:
    // α need not sum to one beforehand.
    Hull(std::shared_ptr<HullRows> rows, const double* signs, const double* alpha);

    // Updates until the gap (‖W‖² − min D) is at most tolerance · ‖W‖², at most so many; how many were made.
    // `pairs` moves weight from the vector with the largest margin (MDM), else all of them give (SK).
    Index run(Index updates, double tolerance, bool pairs);
    // D and ‖W‖² anew from α.
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

    bool toward();    // an update of Schlesinger and Kozinec; false if there is nothing to gain
    bool exchange();  // one of Mitchell, Demyanov and Malozemov
    void move(Move step);  // with signs left out of first and second
    const double* fetch(Index l);
    void rescale();
    void find_support();

    std::shared_ptr<HullRows> rows_;
    std::vector<double> signs_;
    std::vector<Run> runs_;  // of equal signs: few, if the samples are sorted by class
    std::vector<double> alpha_;  // times scale_
    double scale_ = 1.0, square_ = 0.0;
    Buffer<double> margins_;  // D
    Index lowest_ = 0;        // where D is smallest
    std::vector<Index> support_;  // where α > 0, in any order; kept by `exchange` only
};

}  // namespace slim
