// Turns the description of a machine into the arrays that the instruction-set kernels read (plan.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "buffer.h"
#include "machine.h"

namespace slim {

constexpr double kLog2e = 1.4426950408889634074;
constexpr Index kFewFeatures = 4;  // most features for which rows are stored in lanes

// ‖x‖² + ‖z‖² − 2 x·z loses digits as γ‖z‖² grows, and so does ‖x‖₁ + ‖z‖₁ − … for sparse rows. Above these bounds,
// differences are used instead. The error of a kernel value stays below about 4e-6 in float and 1e-11 in double.
template <class T>
constexpr double kLargestExponent = std::is_same<T, float>::value ? 16.0 : 1e4;

constexpr double kFarthest = 16;  // a single point may be this many times as far

template <class T>
const Kernels<T>& kernels();
template <>
inline const Kernels<float>& kernels<float>() { return best_instruction_set().f32; }
template <>
inline const Kernels<double>& kernels<double>() { return best_instruction_set().f64; }

// Owns the arrays of a plan. Dense points are stored in panels, sparse points in an inverted index.
template <class T>
class Packing {
public:
    explicit Packing(const Description& machine) : has_points_(machine.points != nullptr) {
        plan_.p = machine.p;
        plan_.m = machine.m;
        plan_.q = machine.q;
        plan_.blocks = machine.blocks;
        choose_function(machine);
        centre_ = Buffer<T>(has_points_ ? plan_.p : 0, true);  // sparse points may have 2^31 features
        plan_.centre = centre_.get();
        takes_sparse_rows_ =
            !has_points_ || (machine.sparse_rows && !machine.shift && machine.sites == 0 && is_tame(machine));
        if (!takes_sparse_rows_) find_centre(machine);
        choose_form(machine);
        place_points(machine);
        has_points_ ? pack_panels(machine) : invert(machine);
        if (machine.table) pack_table(machine);
        const bool few = !machine.table && plan_.p <= kFewFeatures && plan_.q == 1 && plan_.blocks == 1 && machine.sites == 0 &&
                         plan_.function == Function::exp2;
        if (has_points_ && (few || machine.stages.n > 0))
            pack_few(machine);
    }

    const Packed<T>& plan() const { return plan_; }
    bool has_panels() const { return has_points_; }
    // Whether CSR rows are used directly; otherwise they are made dense, block by block.
    bool takes_sparse_rows() const { return takes_sparse_rows_; }

    // u[slots] of a sparse row and sparse points; Kernels::sparse_arguments does the same for panels.
    void inverted_arguments(const SparseRow<T>& row, T* u) const {
        const bool distance = plan_.form == Form::manhattan;
        T size = 0;
        for (Index i = 0; i < row.n; ++i) size += std::fabs(row.values[i]);
        const Index slots = plan_.vectors * kernels<T>().lanes;
        for (Index s = 0; s < slots; ++s) u[s] = bias_[s] + (distance ? size : gain_[s] * row.norm);
        auto at = feature_.begin();
        for (Index i = 0; i < row.n && at != feature_.end(); ++i) {
            at = std::lower_bound(at, feature_.end(), static_cast<Index>(row.columns[i]));
            if (at == feature_.end() || *at != row.columns[i]) continue;
            const std::size_t f = static_cast<std::size_t>(at - feature_.begin());
            const T x = row.values[i];
            for (Index e = entry_start_[f]; e < entry_start_[f + 1]; ++e) {
                const T z = entry_value_[e];
                u[entry_slot_[e]] += distance ? std::fabs(x - z) - std::fabs(z) - std::fabs(x) : z * x;
            }
        }
    }

private:
    void choose_function(const Description& machine) {
        plan_.degree = machine.degree;
        if (machine.kernel == "rbf" || machine.kernel == "laplacian") plan_.function = Function::exp2;
        else if (machine.kernel == "linear") plan_.function = Function::identity;
        else if (machine.kernel == "sigmoid") plan_.function = Function::tanh;
        else if (machine.kernel == "poly") {
            const bool whole = machine.degree == std::floor(machine.degree) && machine.degree < 1e6;
            plan_.function = whole ? Function::power : Function::real_power;
        } else throw std::invalid_argument("unknown kernel: " + machine.kernel);
    }

    // Radial kernels of dense data are computed about the mean of the points.
    void find_centre(const Description& machine) {
        if (machine.kernel != "rbf" && machine.kernel != "laplacian") return;
        std::vector<double> mean(static_cast<std::size_t>(plan_.p), 0.0);
        for (Index j = 0; j < plan_.m; ++j)
            for (Index k = 0; k < plan_.p; ++k)
                mean[k] += machine.points[j * plan_.p + k] / static_cast<double>(plan_.m);
        for (Index k = 0; k < plan_.p; ++k) {
            const T rounded = static_cast<T>(mean[k]);
            centre_[k] = std::isfinite(rounded) ? rounded : T(0);
        }
    }

    double centred(const Description& machine, Index j, Index k) const {
        return machine.points[j * plan_.p + k] - static_cast<double>(centre_[k]);
    }

    double squared_norm(const Description& machine, Index j) const {
        double sum = 0;
        if (has_points_)
            for (Index k = 0; k < plan_.p; ++k) sum += centred(machine, j, k) * centred(machine, j, k);
        else
            for (Index i = machine.starts[j]; i < machine.starts[j + 1]; ++i)
                sum += machine.values[i] * machine.values[i];
        return sum;
    }

    // Whether exponents are small enough for sums instead of differences. With coefficients, the mean exponent of every
    // output counts, because an error is multiplied by its coefficient; otherwise the exponents of all points.
    bool is_tame(const Description& machine) const {
        if (machine.kernel != "rbf" && machine.kernel != "laplacian") return true;
        const Index q = std::max<Index>(1, plan_.q), blocks = std::max<Index>(1, plan_.blocks);
        Index j = 0;
        for (Index g = 0; g < blocks; ++g) {
            std::vector<double> size(static_cast<std::size_t>(q), 0.0), weight(size);
            for (const Index end = plan_.blocks > 0 ? j + machine.block_sizes[g] : plan_.m; j < end; ++j) {
                const double exponent =
                    machine.gammas[j] *
                    (machine.kernel == "rbf" ? squared_norm(machine, j) : manhattan_norm(machine, j));
                const double most = plan_.q > 0 ? kFarthest * kLargestExponent<T> : kLargestExponent<T>;
                if (!(exponent <= most)) return false;
                for (Index o = 0; o < plan_.q; ++o) {
                    size[o] += std::fabs(machine.coef[j * q + o]) * exponent;
                    weight[o] += std::fabs(machine.coef[j * q + o]);
                }
            }
            for (Index o = 0; o < plan_.q; ++o)
                if (!(size[o] <= kLargestExponent<T> * weight[o])) return false;
        }
        return true;
    }

    void choose_form(const Description& machine) {
        plan_.form = Form::dot;
        if (machine.kernel == "laplacian") plan_.form = Form::manhattan;
        // Distances in feature space are only as accurate as those between x and z, so near 0 they need differences.
        const bool differences = machine.sites > 0 || (has_points_ && !is_tame(machine));
        if (machine.kernel == "rbf" && differences) plan_.form = Form::square;
    }

    // Assigns slots: each block of the head starts with a new vector.
    void place_points(const Description& machine) {
        const int W = kernels<T>().lanes;
        slot_.resize(static_cast<std::size_t>(plan_.m));
        Index point = 0, vector = 0;
        for (Index g = 0; g < std::max<Index>(1, plan_.blocks); ++g) {
            const Index size = plan_.blocks > 0 ? machine.block_sizes[g] : plan_.m;
            for (Index i = 0; i < size; ++i) slot_[point++] = vector * W + i;
            const Index vectors = (size + W - 1) / W;
            block_.insert(block_.end(), static_cast<std::size_t>(vectors), g);
            vector += vectors;
        }
        plan_.vectors = vector;
        plan_.block = block_.data();
        bias_ = Buffer<T>(vector * W, true);
        gain_ = Buffer<T>(vector * W, true);
        plan_.bias = bias_.get();
        plan_.gain = gain_.get();
        for (Index j = 0; j < plan_.m; ++j) place_numbers(machine, j);
        if (machine.sites > 0) return place_sites(machine);
        coef_ = Buffer<T>(vector * W * plan_.q, true);
        plan_.coef = coef_.get();
        for (Index j = 0; j < plan_.m; ++j) {
            for (Index o = 0; o < plan_.q; ++o)
                coef_[(slot_[j] / W * plan_.q + o) * W + slot_[j] % W] = static_cast<T>(machine.coef[j * plan_.q + o]);
        }
    }

    // The sites of a mirror head: the i-th site of every point is in the i-th layer of its vector.
    void place_sites(const Description& machine) {
        const int W = kernels<T>().lanes;
        std::vector<Index> depth(static_cast<std::size_t>(plan_.m), 0);
        layers_.assign(static_cast<std::size_t>(plan_.vectors + 1), 0);
        for (Index s = 0; s < machine.sites; ++s) {
            const Index point = machine.site_points[s];
            Index& deepest = layers_[slot_[point] / W + 1];
            deepest = std::max(deepest, ++depth[point]);
        }
        for (Index v = 0; v < plan_.vectors; ++v) layers_[v + 1] += layers_[v];
        const Index slots = layers_[plan_.vectors] * W;
        coef_ = Buffer<T>(slots * plan_.q, true);
        scale_ = Buffer<T>(slots, true);
        square_ = Buffer<T>(slots, true);
        std::fill(depth.begin(), depth.end(), 0);
        for (Index s = 0; s < machine.sites; ++s) {
            const Index slot = slot_[machine.site_points[s]];
            const Index layer = layers_[slot / W] + depth[machine.site_points[s]]++;
            scale_[layer * W + slot % W] = static_cast<T>(-2 * machine.site_scales[s]);
            square_[layer * W + slot % W] = static_cast<T>(machine.site_squares[s]);
            for (Index o = 0; o < plan_.q; ++o)
                coef_[(layer * plan_.q + o) * W + slot % W] = static_cast<T>(machine.coef[s * plan_.q + o]);
        }
        plan_.coef = coef_.get();
        plan_.layers = layers_.data();
        plan_.scale = scale_.get();
        plan_.square = square_.get();
        plan_.own_gain = static_cast<T>(factor(machine, 0));
        plan_.own_bias = bias_[slot_[0]];
    }

    // Sets the bias and gain of one point.
    void place_numbers(const Description& machine, Index j) {
        const double gamma = machine.gammas[j];
        double bias = 0, gain = 0;
        if (machine.kernel == "rbf") {
            gain = -gamma * kLog2e;
            if (plan_.form == Form::dot) bias = gain * squared_norm(machine, j);
        } else if (machine.kernel == "laplacian") {
            gain = -gamma * kLog2e;
            if (takes_sparse_rows_) bias = manhattan_norm(machine, j);
        } else if (machine.kernel == "sigmoid") {
            bias = 2 * kLog2e * machine.coef0;
        } else if (machine.kernel == "poly") {
            bias = machine.coef0;
        }
        bias_[slot_[j]] = static_cast<T>(bias);
        gain_[slot_[j]] = static_cast<T>(gain);
    }

    double manhattan_norm(const Description& machine, Index j) const {
        double sum = 0;
        if (has_points_)
            for (Index k = 0; k < plan_.p; ++k) sum += std::fabs(machine.points[j * plan_.p + k]);
        else
            for (Index i = machine.starts[j]; i < machine.starts[j + 1]; ++i) sum += std::fabs(machine.values[i]);
        return sum;
    }

    // The factor by which the coordinates of point j are multiplied in advance.
    double factor(const Description& machine, Index j) const {
        const double gamma = machine.gammas[j];
        if (plan_.form != Form::dot) return 1;
        if (machine.kernel == "rbf") return 2 * kLog2e * gamma;
        if (machine.kernel == "sigmoid") return 2 * kLog2e * gamma;
        return gamma;
    }

    void pack_panels(const Description& machine) {
        const int W = kernels<T>().lanes;
        panels_ = Buffer<T>(plan_.vectors * W * plan_.p, true);
        plan_.panels = panels_.get();
        for (Index j = 0; j < plan_.m; ++j) {
            const Index vector = slot_[j] / W, lane = slot_[j] % W;
            const bool alone = plan_.vectors % 2 == 1 && vector == plan_.vectors - 1;
            const Index stride = alone ? W : 2 * W;
            T* at = panels_.get() + vector / 2 * 2 * W * plan_.p + (vector % 2) * W + lane;
            const double by = factor(machine, j);
            for (Index k = 0; k < plan_.p; ++k) at[k * stride] = static_cast<T>(by * centred(machine, j, k));
        }
    }

    // Shares of x·z are multiplied like the points; those of ‖x − z‖² by the gain, where the argument is a sum of products.
    void pack_table(const Description& machine) {
        const Index width = plan_.vectors * kernels<T>().lanes;
        table_ = Buffer<T>(machine.table_rows * width, true);
        plan_.table = table_.get();
        for (Index j = 0; j < plan_.m; ++j) {
            const bool product = plan_.form == Form::dot;
            const double by = product && machine.kernel == "rbf" ? -machine.gammas[j] * kLog2e : factor(machine, j);
            for (Index r = 0; r < machine.table_rows; ++r)
                table_[r * width + slot_[j]] = static_cast<T>(by * machine.table[r * plan_.m + j]);
        }
    }

    void pack_few(const Description& machine) {
        const Index step = plan_.p + 3;
        few_ = Buffer<T>(plan_.m * step);
        plan_.few = few_.get();
        for (Index j = 0; j < plan_.m; ++j) {
            T* point = few_.get() + j * step;
            for (Index k = 0; k < plan_.p; ++k)
                point[k] = static_cast<T>(factor(machine, j) * centred(machine, j, k));
            point[plan_.p] = bias_[slot_[j]];
            point[plan_.p + 1] = gain_[slot_[j]];
            point[plan_.p + 2] = plan_.q == 1 ? static_cast<T>(machine.coef[j]) : T(0);
        }
    }

    // Stores sparse points as an inverted index: for each feature in use, the slots and values of its points.
    void invert(const Description& machine) {
        const Index stored = machine.starts[plan_.m];
        feature_.assign(machine.columns, machine.columns + stored);
        std::sort(feature_.begin(), feature_.end());
        feature_.erase(std::unique(feature_.begin(), feature_.end()), feature_.end());
        const auto place = [&](Index i) {
            return std::lower_bound(feature_.begin(), feature_.end(), machine.columns[i]) - feature_.begin();
        };
        entry_start_.assign(feature_.size() + 1, 0);
        for (Index i = 0; i < stored; ++i) ++entry_start_[place(i) + 1];
        for (std::size_t f = 0; f < feature_.size(); ++f) entry_start_[f + 1] += entry_start_[f];
        entry_slot_.resize(static_cast<std::size_t>(stored));
        entry_value_.resize(static_cast<std::size_t>(stored));
        std::vector<Index> next(entry_start_.begin(), entry_start_.end());
        for (Index j = 0; j < plan_.m; ++j)
            for (Index i = machine.starts[j]; i < machine.starts[j + 1]; ++i) {
                const Index e = next[place(i)]++;
                entry_slot_[e] = slot_[j];
                entry_value_[e] = static_cast<T>(factor(machine, j) * machine.values[i]);
            }
    }

    Packed<T> plan_{};
    bool has_points_, takes_sparse_rows_ = false;
    std::vector<Index> slot_, block_, layers_;
    Buffer<T> centre_, panels_, bias_, gain_, coef_, scale_, square_, few_, table_;
    std::vector<Index> feature_, entry_start_, entry_slot_;
    std::vector<T> entry_value_;
};

}  // namespace slim
