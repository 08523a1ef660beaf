#include "machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "buffer.h"
#include "input_map.h"
#include "packing.h"
#include "parallel.h"
#include "stages.h"

namespace slim {
namespace {

constexpr Index kBlockBytes = 512 << 10;  // of packed rows: they stay in the second-level cache while all panels are read
constexpr Index kBlockRows = 240;
constexpr Index kLaneBlockRows = 240;
constexpr Index kFewestLanes = 16;  // with fewer rows, one row per lane would leave too many lanes empty
constexpr Index kLaneBytes = 256 << 10;  // of the head's sums of a block of rows

// Without a branch per number: x − x is zero if x is finite. Several sums, because each addition waits for the last one.
template <class T>
bool all_finite(const T* x, Index n) {
    constexpr Index several = 16;
    T sum[several] = {};
    Index i = 0;
    for (; i + several <= n; i += several)
        for (Index k = 0; k < several; ++k) sum[k] += x[i + k] - x[i + k];
    for (; i < n; ++i) sum[0] += x[i] - x[i];
    return std::all_of(sum, sum + several, [](T each) { return each == 0; });
}

template <class T>
class MachineOf : public Machine {
public:
    explicit MachineOf(const Description& machine) : packing_(machine), plan_(packing_.plan()), map_(machine) {
        if (machine.stages.n > 0) stages_.reset(new Stages<T>(machine, packing_));
        const Index width = this->width();
        start_.assign(static_cast<std::size_t>(width), 0.0);
        if (machine.start) std::copy(machine.start, machine.start + width, start_.begin());
    }

    bool is_float() const override { return std::is_same<T, float>::value; }

    Index run(const DenseRows& rows, double* out, int threads) const override {
        return rows.is_float ? dense<float>(rows, out, threads) : dense<double>(rows, out, threads);
    }

    Index run(const CsrRows& rows, double* out, int threads) const override {
        return rows.is_float ? csr<float>(rows, out, threads) : csr<double>(rows, out, threads);
    }

    Index values(const DenseRows& rows, void* out, int threads) const override {
        if (!packing_.has_panels() || plan_.q > 0) throw std::logic_error("values() is for dense points without a head");
        if (rows.is_float) return blocks<float>(DenseSource<float>{rows}, static_cast<T*>(out), threads);
        return blocks<double>(DenseSource<double>{rows}, static_cast<T*>(out), threads);
    }

private:
    // The number of outputs of a row.
    Index width() const { return stages_ ? stages_->width() : plan_.q > 0 ? plan_.blocks * plan_.q : plan_.m; }

    // --- rows ---------------------------------------------------------------------------------------------------

    template <class X>
    struct DenseSource {
        using Value = X;
        const DenseRows& rows;
        Index size() const { return rows.n; }
        // Row r, [d]; it is written to `space` if it is not stored as a dense row.
        const X* row(Index r, Index d, X*) const { return static_cast<const X*>(rows.data) + r * d; }
        const std::int32_t* codes(Index r) const { return rows.codes ? rows.codes + r * rows.lookups : nullptr; }
        Index lookups() const { return rows.lookups; }
    };

    template <class X>
    struct CsrSource {
        using Value = X;
        const CsrRows& rows;
        Index size() const { return rows.n; }
        const std::int32_t* codes(Index) const { return nullptr; }
        Index lookups() const { return 0; }
        const X* row(Index r, Index d, X* space) const {
            std::fill(space, space + d, X(0));
            const X* data = static_cast<const X*>(rows.data);
            for (Index i = begin(rows, r); i < rows.starts[r + 1]; ++i) {
                check_column(rows, i, d);
                space[rows.columns[i]] += data[i];
            }
            return space;
        }
    };

    static Index begin(const CsrRows& rows, Index r) {
        if (rows.starts[r] < 0 || rows.starts[r] > rows.starts[r + 1] || rows.starts[r + 1] > rows.stored)
            throw std::invalid_argument("X is a malformed CSR matrix: indptr does not rise from 0 to the stored values.");
        return rows.starts[r];
    }

    static void check_column(const CsrRows& rows, Index i, Index d) {
        if (rows.columns[i] < 0 || rows.columns[i] >= d)
            throw std::invalid_argument("X is a malformed CSR matrix: a column index is out of range.");
    }

    template <class X>
    Index dense(const DenseRows& rows, double* out, int threads) const {
        if (packing_.has_panels()) return blocks<X>(DenseSource<X>{rows}, out, threads);
        return sparse_rows<X>(DenseEntries<X>{rows, map_.width_in()}, rows.n, out, threads);
    }

    template <class X>
    Index csr(const CsrRows& rows, double* out, int threads) const {
        if (!packing_.takes_sparse_rows() || (stages_ && packing_.has_panels())) return blocks<X>(CsrSource<X>{rows}, out, threads);
        return sparse_rows<X>(CsrEntries<X>{rows, map_.width_in()}, rows.n, out, threads);
    }

    // Initialises the sums of n rows.
    void start(double* sums, Index n) const {
        const Index width = static_cast<Index>(start_.size());
        if (width == 1) return std::fill(sums, sums + n, start_[0]);
        for (Index r = 0; r < n; ++r)
            for (Index i = 0; i < width; ++i) sums[r * width + i] = start_[i];
    }

    // The number of rows in a block: it fits into cache, gives every thread a share, and has whole tiles or lane groups.
    Index block_rows(Index n, bool in_lanes, int threads) const {
        if (n == 1) return 1;
        const Index unit = in_lanes ? kernels<T>().lane_rows : kernels<T>().tile_rows;
        Index most = in_lanes ? kLaneBlockRows : kBlockRows;
        most = std::min(most, kBlockBytes / std::max<Index>(1, plan_.p * static_cast<Index>(sizeof(T))));
        if (plan_.q > 0) {
            const Index lane = plan_.q * kernels<T>().lanes * static_cast<Index>(sizeof(T));
            most = std::min(most, kLaneBytes / lane);
        }
        if (stages_) most = std::min(most, stages_->most_rows());
        most = std::min(most, (n + threads - 1) / threads);
        return std::max<Index>(1, (most + unit - 1) / unit) * unit;
    }

    // --- dense blocks -------------------------------------------------------------------------------------------

    template <class Source, class Out>
    struct BlockWork {
        const MachineOf& machine;
        const Source& source;
        Out* out;
        Index block;
        bool in_lanes;
        std::atomic<Index>& flagged;

        struct State {
            Buffer<typename Source::Value> row;
            Buffer<double> sum;
            Buffer<T> rows, packed, norms, scratch;
        };

        State state() const {
            const Packed<T>& plan = machine.plan_;
            const bool copied = !machine.template passes<Source>();
            return {Buffer<typename Source::Value>(copied ? machine.map_.width_in() : 0),
                    Buffer<double>(copied ? plan.p : 0),
                    Buffer<T>(copied ? block * plan.p : 0),
                    Buffer<T>(block * plan.p),
                    Buffer<T>(block),
                    Buffer<T>(kernels<T>().scratch(block, plan.q))};
        }

        void operator()(State& state, Index begin, Index end) const {
            const Packed<T>& plan = machine.plan_;
            const Index n = end - begin;
            kernels<T>().pack(plan, machine.row_block(source, begin, n, state), n, in_lanes, state.packed.get(),
                              state.norms.get());
            const Rows<T> rows{state.packed.get(), state.norms.get(), n, in_lanes, source.codes(begin), source.lookups()};
            const Index width = machine.width();
            Out* at = out + begin * width;
            evaluate(plan, rows, state.scratch.get(), at, n * width);
            if (all_finite(state.norms.get(), n) && all_finite(at, n * width)) return;
            for (Index r = 0; r < n; ++r)
                if (!std::isfinite(state.norms[r]) || !all_finite(at + r * width, width)) {
                    if (width > 0) at[r * width] = std::numeric_limits<Out>::quiet_NaN();
                    ++flagged;
                }
        }

        void evaluate(const Packed<T>& plan, const Rows<T>& rows, T* scratch, Out* at, Index size) const {
            if constexpr (std::is_same<Out, double>::value) {
                if (plan.q > 0) {
                    machine.start(at, rows.n);
                    kernels<T>().sums(plan, rows, scratch, at);
                    return;
                }
                kernels<T>().wide_values(plan, rows, scratch, at);
                for (double* end = at + size; at < end; at += plan.m)
                    for (Index i = 0; i < plan.m; ++i) at[i] += machine.start_[i];
            } else {
                (void)size;
                kernels<T>().values(plan, rows, scratch, at);
            }
        }
    };

    template <class Source>
    struct StagedWork {
        const MachineOf& machine;
        const Source& source;
        double* out;
        Index block;
        bool in_lanes;
        std::atomic<Index>& flagged;

        struct State {
            Buffer<typename Source::Value> row;
            Buffer<double> sum;
            Buffer<T> rows;
            typename Stages<T>::State stages;
        };

        State state() const {
            const bool copied = !machine.template passes<Source>();
            const Index p = copied ? machine.plan_.p : 0;
            return {Buffer<typename Source::Value>(copied ? machine.map_.width_in() : 0), Buffer<double>(p),
                    Buffer<T>(block * p), machine.stages_->state(in_lanes ? block : 0)};
        }

        void operator()(State& state, Index begin, Index end) const {
            const T* rows = machine.row_block(source, begin, end - begin, state);
            double* at = out + begin * machine.width();
            if (in_lanes) {
                flagged += machine.stages_->run(state.stages, rows, end - begin, at);
                return;
            }
            for (Index r = 0; r < end - begin; ++r)
                flagged += machine.stages_->run_one(rows + r * machine.plan_.p, at + r * machine.width());
        }
    };

    // Whether the data can be read in place.
    template <class Source>
    bool passes() const {
        return std::is_same<Source, DenseSource<T>>::value && !map_.is_there();
    }

    // Mapped rows [n][p] in this precision; the data itself if nothing must be converted.
    template <class Source, class State>
    const T* row_block(const Source& source, Index begin, Index n, State& state) const {
        using X = typename Source::Value;
        if constexpr (std::is_same<Source, DenseSource<T>>::value) {
            if (passes<Source>()) return source.row(begin, plan_.p, nullptr);
        }
        for (Index r = 0; r < n; ++r) {
            const X* x = source.row(begin + r, map_.width_in(), state.row.get());
            T* y = state.rows.get() + r * plan_.p;
            if (map_.is_there()) map_.apply(x, y, state.sum.get());
            else for (Index k = 0; k < plan_.p; ++k) y[k] = static_cast<T>(x[k]);
        }
        return state.rows.get();
    }

    template <class X, class Source, class Out>
    Index blocks(const Source& source, Out* out, int threads) const {
        std::atomic<Index> flagged{0};
        const bool in_lanes = plan_.few && source.size() >= kFewestLanes;
        const Index block = block_rows(source.size(), in_lanes, threads);
        if constexpr (std::is_same<Out, double>::value) {
            if (stages_ && source.size() == 1 && passes<Source>()) return alone(source, out);
            const StagedWork<Source> work{*this, source, out, block, in_lanes, flagged};
            if (stages_) return in_blocks(source.size(), block, threads, work), flagged.load();
        }
        in_blocks(source.size(), block, threads, BlockWork<Source, Out>{*this, source, out, block, in_lanes, flagged});
        return flagged;
    }

    // One row, read in place, with early exit.
    template <class Source>
    Index alone(const Source& source, double* out) const {
        if constexpr (std::is_same<Source, DenseSource<T>>::value)
            return stages_->run_one(source.row(0, plan_.p, nullptr), out);
        return 0;
    }

    // --- sparse rows --------------------------------------------------------------------------------------------

    // Fills values and columns with row r, and returns their number.
    template <class X>
    struct CsrEntries {
        const CsrRows& rows;
        Index d;
        void read(Index r, std::vector<T>& values, std::vector<std::int32_t>& columns) const {
            const X* data = static_cast<const X*>(rows.data);
            values.clear();
            columns.clear();
            for (Index i = begin(rows, r); i < rows.starts[r + 1]; ++i) {
                check_column(rows, i, d);
                values.push_back(static_cast<T>(data[i]));
                columns.push_back(rows.columns[i]);
            }
        }
    };

    template <class X>
    struct DenseEntries {
        const DenseRows& rows;
        Index d;
        void read(Index r, std::vector<T>& values, std::vector<std::int32_t>& columns) const {
            const X* data = static_cast<const X*>(rows.data) + r * d;
            values.clear();
            columns.clear();
            for (Index k = 0; k < d; ++k)
                if (data[k] != X(0)) {
                    values.push_back(static_cast<T>(data[k]));
                    columns.push_back(static_cast<std::int32_t>(k));
                }
        }
    };

    template <class Entries>
    struct SparseWork {
        const MachineOf& machine;
        const Entries& entries;
        double* out;
        std::atomic<Index>& flagged;

        struct State {
            std::vector<T> values;
            std::vector<std::int32_t> columns;
            Buffer<T> u, scratch;
        };

        State state() const {
            const Packed<T>& plan = machine.plan_;
            return {{}, {}, Buffer<T>(plan.vectors * kernels<T>().lanes), Buffer<T>(kernels<T>().scratch(1, plan.q))};
        }

        void operator()(State& state, Index begin, Index end) const {
            const Packed<T>& plan = machine.plan_;
            const Index width = machine.width();
            for (Index r = begin; r < end; ++r) {
                entries.read(r, state.values, state.columns);
                T norm = 0;
                for (const T x : state.values) norm += x * x;
                double* at = out + r * width;
                machine.start(at, 1);
                const SparseRow<T> row{state.values.data(), state.columns.data(),
                                       static_cast<Index>(state.values.size()), norm};
                if (machine.stages_) {
                    flagged += machine.stages_->run_sparse(row, at);
                    continue;
                }
                if (machine.packing_.has_panels()) kernels<T>().sparse_arguments(plan, row, state.u.get());
                else machine.packing_.inverted_arguments(row, state.u.get());
                kernels<T>().finish(plan, state.u.get(), state.scratch.get(), at);
                if (plan.q == 0)
                    for (Index i = 0; i < width; ++i) at[i] += machine.start_[i];
                if (!std::isfinite(norm) || !all_finite(at, width)) {
                    if (width > 0) at[0] = std::numeric_limits<double>::quiet_NaN();
                    ++flagged;
                }
            }
        }
    };

    template <class X, class Entries>
    Index sparse_rows(const Entries& entries, Index n, double* out, int threads) const {
        std::atomic<Index> flagged{0};
        const Index block = std::max<Index>(1, std::min<Index>(64, (n + threads - 1) / threads));
        in_blocks(n, block, threads, SparseWork<Entries>{*this, entries, out, flagged});
        return flagged;
    }

    Packing<T> packing_;
    const Packed<T>& plan_;
    Map map_;
    std::unique_ptr<Stages<T>> stages_;
    std::vector<double> start_;
};

template <class T>
double exp2_seconds_of(int repeats) {
    constexpr Index n = 4096;
    Buffer<T> array(n);
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeats; ++i) {
        for (Index k = 0; k < n; ++k) array[k] = static_cast<T>(-20.0 * static_cast<double>(k) / n);
        const auto start = std::chrono::steady_clock::now();
        kernels<T>().exp2_array(array.get(), n);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        best = std::min(best, taken.count() / n);
    }
    return best;
}

}  // namespace

std::unique_ptr<Machine> make_machine(const Description& description, bool in_float) {
    if (in_float) return std::unique_ptr<Machine>(new MachineOf<float>(description));
    return std::unique_ptr<Machine>(new MachineOf<double>(description));
}

double exp2_seconds(bool in_float, int repeats) {
    return in_float ? exp2_seconds_of<float>(repeats) : exp2_seconds_of<double>(repeats);
}

}  // namespace slim
