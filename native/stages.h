// Early exit: rows pass from stage to stage, each with more points, until a stage decides.
//
// Stage s has its own sums over the first sizes[s] points. With one output it decides if the score is above `upper` or
// below `lower`; with several, if the best score leads the second best by more than `upper`. The last stage decides the
// rest. Kernel values are computed once and kept. Rows are stored in lanes; when some are decided, the others move up. A
// single row, or a sparse one, is evaluated in *steps* of whole vectors of points: points in the last vector of a stage
// cost nothing extra.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "buffer.h"
#include "machine.h"
#include "packing.h"

namespace slim {

template <class T>
class Stages {
public:
    // The working memory of a thread for a block of rows.
    struct State {
        Buffer<T> packed, norms, kept, scores;
        Buffer<std::int32_t> place;
        Buffer<std::uint64_t> alive, sure;  // a bit for each lane, 64 to a word
    };

    Stages(const Description& machine, const Packing<T>& whole)
        : plan_(whole.plan()), q_(machine.stages.q), counts_(machine.stages.counts) {
        W_ = kernels<T>().lanes;
        for (Index s = 0; s < machine.stages.n; ++s) add_stage(machine.stages, s, machine.m);
        if (whole.has_panels()) add_views();
        else add_steps(machine);
    }

    Index width() const { return counts_ ? 1 : q_; }
    // The number of rows in a block, such that their kept values stay in cache.
    Index most_rows() const { return kKeptBytes / (slots() * static_cast<Index>(sizeof(T)) + 1); }

    // Allocates for n rows in lanes, rounded up to whole groups.
    State state(Index n) const {
        const Index unit = kernels<T>().lane_rows, wide = (n + unit - 1) / unit * unit;
        return {Buffer<T>(wide * plan_.p), Buffer<T>(wide), Buffer<T>(wide * slots()), Buffer<T>(wide * q_),
                Buffer<std::int32_t>(wide), Buffer<std::uint64_t>(words(wide)), Buffer<std::uint64_t>(words(wide))};
    }

    // Evaluates rows [n][p] to out[n][width]. Rows or scores that are not finite give NaN first; returns their number.
    Index run(State& state, const T* rows, Index n, double* out) const {
        const Index unit = kernels<T>().lane_rows, stride = (n + unit - 1) / unit * unit;
        T *packed = state.packed.get(), *norms = state.norms.get(), *kept = state.kept.get();
        std::uint64_t *alive = state.alive.get(), *sure = state.sure.get();
        kernels<T>().pack(plan_, rows, n, true, packed, norms);
        Index bad = enter(state, n, stride, out), lanes = stride, from = 0, left = n - bad, waste = 0;
        for (std::size_t s = 0; s < stages_.size() && left > 0; ++s) {
            const Stage& stage = stages_[s];
            waste += (lanes - left) * (stage.size - from) * (plan_.p + kFunction);
            if (waste > lanes * (plan_.p + from) * kMove) {  // idle lanes have cost as much as moving rows up
                move_up(state, from, stride, lanes);
                lanes = (left + unit - 1) / unit * unit;
                waste = 0;
            }
            kernels<T>().keep_in_lanes(plan_, packed, norms, lanes, stride, from, stage.size, kept);
            kernels<T>().judge(kept, stride, lanes, coef(s), stage.vectors * W_, stage.size, stage.intercept.data(), q_,
                               static_cast<T>(stage.upper), static_cast<T>(stage.lower), state.scores.get(), sure);
            from = stage.size;
            const bool last = s + 1 == stages_.size();
            for (Index v = 0; v < words(lanes); ++v) {
                std::uint64_t decided = last ? alive[v] : alive[v] & sure[v];
                alive[v] &= ~decided;
                for (; decided; decided &= decided - 1, --left) {
                    const Index lane = 64 * v + lowest_bit(decided);
                    bad += write(stage, state.scores.get() + lane, stride, out + state.place[lane] * width());
                }
            }
        }
        return bad;
    }

    // One row x[p], in wider steps: a single row is limited by the latency of its arithmetic, not by throughput.
    Index run_one(const T* x, double* out) const {
        constexpr Index line = 64 / static_cast<Index>(sizeof(T));
        const auto room = [](Index n) { return (n + line - 1) / line * line; };
        const Index scratch = room(kernels<T>().scratch(1, 0));
        const Index total = room(plan_.p) + line + scratch + room(slots()) + q_;
        alignas(64) T few[kOnStack / sizeof(T)];
        Buffer<T> many(total > static_cast<Index>(kOnStack / sizeof(T)) ? total : 0);
        T* packed = many.get() ? many.get() : few;
        T* norm = packed + room(plan_.p);
        T* kept = norm + line + scratch;
        T* scores = kept + room(slots());
        kernels<T>().pack(plan_, x, 1, false, packed, norm);
        if (!std::isfinite(*norm)) return give_up(out);
        std::size_t s = 0;
        for (const View& view : views_) {
            kernels<T>().keep(view.plan, {packed, norm, 1, false}, norm + line, kept + view.slot);
            for (; s < view.end; ++s)
                if (decides(s, kept, scores)) return write(stages_[s], scores, 1, out);
        }
        return 0;
    }

    // One row in coordinate form, with sparse points.
    Index run_sparse(const SparseRow<T>& row, double* out) const {
        if (!std::isfinite(row.norm)) return give_up(out);
        Buffer<T> kept(slots()), u(slots()), scratch(kernels<T>().scratch(1, 0)), scores(q_);
        Buffer<double> values(slots());
        std::size_t s = 0;
        for (const Step& step : steps_) {
            const Packed<T>& plan = step.packing->plan();
            step.packing->inverted_arguments(row, u.get());
            kernels<T>().finish(plan, u.get(), scratch.get(), values.get());
            for (Index j = 0; j < plan.vectors * W_; ++j)
                kept[step.slot + j] = j < plan.m ? static_cast<T>(values[j]) : T(0);
            for (; s < step.end; ++s)
                if (decides(s, kept.get(), scores.get())) return write(stages_[s], scores.get(), 1, out);
        }
        return 0;
    }

private:
    static constexpr Index kKeptBytes = 256 << 10;
    static constexpr std::size_t kOnStack = 32 << 10;
    static constexpr Index kViewVectors = 4;  // of points that a single row is evaluated with at a time
    // Rough costs per lane, in multiply-adds: of the kernel function, and of moving a number up.
    static constexpr Index kFunction = 16, kMove = 24 / static_cast<Index>(sizeof(T));

    struct Stage {
        Index size, vectors;   // points, and vectors that hold them
        Index coef;            // the start of coef[q][vectors W]
        double upper, lower;   // numbers of T, rounded outwards
        double shift[2];       // subtracted from a score below, and above: a threshold on the other side of zero
        std::vector<T> intercept;
    };
    struct Step {
        std::unique_ptr<Packing<T>> packing;
        Index slot;        // of its first point
        std::size_t end;   // the first stage that needs more points
    };
    struct View {
        Packed<T> plan;
        Index slot;
        std::size_t end;
    };

    Index slots() const { return stages_.back().vectors * W_; }
    const T* coef(std::size_t s) const { return coef_.data() + stages_[s].coef; }

    void add_stage(const StageDescription& given, Index s, Index m) {
        const Index size = given.sizes[s], vectors = (size + W_ - 1) / W_, columns = given.n * q_;
        const bool last = s + 1 == given.n;
        Stage stage{size, vectors, static_cast<Index>(coef_.size()), last ? 0.0 : outward(given.upper[s], 1),
                    last || !given.lower ? 0.0 : outward(given.lower[s], -1), {}, {}};
        stage.shift[0] = std::max(stage.lower, 0.0);
        stage.shift[1] = std::min(stage.upper, 0.0);
        coef_.resize(coef_.size() + static_cast<std::size_t>(q_ * vectors * W_), T(0));
        for (Index o = 0; o < q_; ++o) {
            stage.intercept.push_back(static_cast<T>(given.intercept[s * q_ + o]));
            for (Index j = 0; j < std::min(size, m); ++j)
                coef_[stage.coef + o * vectors * W_ + j] = static_cast<T>(given.coef[j * columns + s * q_ + o]);
        }
        stages_.push_back(stage);
    }

    // For sparse points, steps end with the stages, at whole vectors.
    void add_steps(const Description& machine) {
        Index from = 0;
        for (std::size_t s = 0; s < stages_.size(); ++s) {
            if (s + 1 < stages_.size() && stages_[s + 1].vectors == stages_[s].vectors) continue;
            const Index to = std::min(stages_[s].vectors * W_, machine.m);
            steps_.push_back({packing_of(machine, from, to), from, s + 1});
            from = to;
        }
    }

    static std::unique_ptr<Packing<T>> packing_of(const Description& machine, Index from, Index to) {
        Description part = machine;
        part.stages = {};
        part.m = to - from;
        part.gammas = machine.gammas + from;
        std::vector<Index> starts;
        for (Index j = from; j <= to; ++j) starts.push_back(machine.starts[j] - machine.starts[from]);
        part.values = machine.values + machine.starts[from];
        part.columns = machine.columns + machine.starts[from];
        part.starts = starts.data();
        return std::unique_ptr<Packing<T>>(new Packing<T>(part));
    }

    // Parts of the whole plan, in whole panels.
    void add_views() {
        Index from = 0;
        for (std::size_t s = 0; s < stages_.size(); ++s) {
            if (s + 1 < stages_.size() && stages_[s + 1].vectors <= from + kViewVectors) continue;
            Index to = std::max(stages_[s].vectors, from);
            to = std::min(to + (to - from) % 2, plan_.vectors);
            View view{plan_, from * W_, s + 1};
            view.plan.vectors = to - from;
            view.plan.panels += from * W_ * plan_.p;
            view.plan.bias += from * W_;
            view.plan.gain += from * W_;
            views_.push_back(view);
            from = to;
        }
    }

    Index give_up(double* out) const {
        out[0] = std::numeric_limits<double>::quiet_NaN();
        return 1;
    }

    // The nearest number of T that is not below x (side 1), or not above it (side −1).
    static double outward(double x, int side) {
        const T rounded = static_cast<T>(x);
        if (side * (static_cast<double>(rounded) - x) >= 0) return static_cast<double>(rounded);
        return static_cast<double>(std::nextafter(rounded, side * std::numeric_limits<T>::infinity()));
    }

    static Index words(Index lanes) { return (lanes + 63) / 64; }

    static int lowest_bit(std::uint64_t mask) {
#if defined(__GNUC__) || defined(__clang__)
        return __builtin_ctzll(mask);
#else
        int i = 0;
        while (!(mask >> i & 1)) ++i;
        return i;
#endif
    }

    // Puts row i in lane i. Rows that are not finite are left out; returns their number.
    Index enter(State& state, Index n, Index lanes, double* out) const {
        Index bad = 0;
        for (Index i = 0; i < lanes; ++i) state.place[i] = static_cast<std::int32_t>(i);
        fill_lanes(state.alive.get(), n, words(lanes));
        int strange = 0;
        for (Index i = 0; i < n; ++i) strange |= state.norms[i] - state.norms[i] != 0;
        if (!strange) return 0;
        for (Index i = 0; i < n; ++i)
            if (!std::isfinite(state.norms[i])) {
                state.alive[i / 64] &= ~(std::uint64_t(1) << i % 64);
                bad += give_up(out + i * width());
            }
        return bad;
    }

    // A bit for each of the first n lanes.
    static void fill_lanes(std::uint64_t* alive, Index n, Index count) {
        for (Index v = 0; v < count; ++v, n -= 64)
            alive[v] = n >= 64 ? ~std::uint64_t(0) : n > 0 ? (std::uint64_t(1) << n) - 1 : 0;
    }

    // Moves the remaining rows to the first lanes, with m values of each.
    void move_up(State& state, Index m, Index stride, Index lanes) const {
        std::uint64_t* alive = state.alive.get();
        kernels<T>().move_up(state.norms.get(), 1, stride, alive, lanes);
        kernels<T>().move_up(state.packed.get(), plan_.p, stride, alive, lanes);
        kernels<T>().move_up(state.kept.get(), m, stride, alive, lanes);
        Index n = 0;
        for (Index v = 0; v < words(lanes); ++v)
            for (std::uint64_t mask = alive[v]; mask; mask &= mask - 1)
                state.place[n++] = state.place[64 * v + lowest_bit(mask)];
        fill_lanes(alive, n, words(lanes));
    }

    // Computes the scores of stage s for one row, and returns whether it decides.
    bool decides(std::size_t s, const T* kept, T* scores) const {
        const Stage& stage = stages_[s];
        kernels<T>().stage_sums(kept, coef(s), stage.vectors, q_, scores);
        T best = 0, second = 0;
        for (Index o = 0; o < q_; ++o) {
            scores[o] += stage.intercept[o];
            second = o < 2 ? std::min(best, scores[o]) : std::max(second, std::min(best, scores[o]));
            best = o == 0 ? scores[o] : std::max(best, scores[o]);
            if (o == 0) second = best;
        }
        if (s + 1 == stages_.size()) return true;
        if (q_ == 1) return !(best <= stage.upper) || !(best >= stage.lower);
        return !(best - second <= stage.upper);
    }

    // Writes the scores of the deciding stage, which are `step` apart, shifted so that the sign gives the prediction.
    // Returns 1 if they are not finite.
    Index write(const Stage& stage, const T* scores, Index step, double* out) const {
        if (q_ == 1) {
            const double score = static_cast<double>(*scores);
            if (!(score - score == 0)) return give_up(out);
            // Without a branch, which would be unpredictable.
            *out = counts_ ? static_cast<double>(stage.size) : score - stage.shift[score > stage.upper];
            return 0;
        }
        for (Index o = 0; o < q_; ++o)
            if (!(scores[o * step] - scores[o * step] == 0)) return give_up(out);
        if (counts_) *out = static_cast<double>(stage.size);
        else for (Index o = 0; o < q_; ++o) out[o] = static_cast<double>(scores[o * step]);
        return 0;
    }

    const Packed<T>& plan_;
    Index q_, W_ = 1;
    bool counts_;
    std::vector<Stage> stages_;
    std::vector<T> coef_;
    std::vector<Step> steps_;
    std::vector<View> views_;
};

}  // namespace slim
