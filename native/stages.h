// Early exit: rows pass from stage to stage, each with more points, until a stage is sure of its answer.
//
// Stage s has sums of its own over the first sizes[s] points. With one output it decides where the score is above `upper`
// or below `lower`, with several where the best score leads the second by more than `upper`; the last stage decides all
// that is left. Kernel values are computed once and kept. They come in *steps* of whole vectors: points that share a
// vector with the last one of a stage cost nothing.
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
    // What a thread needs for a block of rows.
    struct State {
        Buffer<T> rows, packed, norms, scratch, kept;
        Buffer<double> scores;
        Buffer<std::int32_t> place, met;
    };

    Stages(const Description& machine, const Packing<T>& whole)
        : plan_(whole.plan()), q_(machine.stages.q), counts_(machine.stages.counts) {
        W_ = kernels<T>().lanes;
        for (Index s = 0; s < machine.stages.n; ++s) add_stage(machine.stages, s, machine.m);
        add_steps(machine, whole);
        if (whole.has_panels()) add_views();
    }

    Index width() const { return counts_ ? 1 : q_; }
    bool in_lanes() const { return plan_.few != nullptr; }
    // Rows of a block such that the values kept of them stay in cache.
    Index most_rows() const { return std::max<Index>(1, kKeptBytes / (slots() * static_cast<Index>(sizeof(T)) + 1)); }

    State state(Index n) const {
        const Index wide = (n + kernels<T>().lane_rows) * (in_lanes() ? 1 : 0) + n;  // lanes are rounded up
        return {Buffer<T>(n * plan_.p), Buffer<T>(wide * plan_.p), Buffer<T>(wide),
                Buffer<T>(kernels<T>().scratch(n, 0)), Buffer<T>(wide * slots()), Buffer<double>(n * q_),
                Buffer<std::int32_t>(n), Buffer<std::int32_t>(n)};
    }

    // Rows [n][p] to out[n][width]; those that are not finite, or whose scores are not, start with a NaN and are counted.
    Index run(State& state, const T* rows, Index n, bool in_lanes, double* out) const {
        return in_lanes ? run_in_lanes(state, rows, n, out) : run_in_tiles(state, rows, n, out);
    }

    // One row x[p], by wider steps: a row alone waits for its arithmetic, not for its share of the processor.
    Index run_one(const T* x, double* out) const {
        constexpr Index line = 64 / static_cast<Index>(sizeof(T));
        const auto room = [](Index n) { return (n + line - 1) / line * line; };
        const Index scratch = room(kernels<T>().scratch(1, 0));
        const Index total = room(plan_.p) + line + scratch + room(slots());
        alignas(64) T few[kOnStack / sizeof(T)];
        alignas(64) double scores[kScoresOnStack];
        Buffer<T> many(total > static_cast<Index>(kOnStack / sizeof(T)) ? total : 0);
        Buffer<double> many_scores(q_ > kScoresOnStack ? q_ : 0);
        T* packed = many.get() ? many.get() : few;
        T* norm = packed + room(plan_.p);
        T* kept = norm + line + scratch;
        double* sums = many_scores.get() ? many_scores.get() : scores;
        kernels<T>().pack(plan_, x, 1, false, packed, norm);
        if (!std::isfinite(*norm)) return give_up(out);
        std::int32_t place = 0;
        std::size_t s = 0;
        for (const View& view : views_) {
            kernels<T>().keep(view.plan, {packed, norm, 1, false}, norm + line, &place, kept + view.slot, 0);
            for (; s < view.end; ++s) {
                kernels<T>().stage_sums(kept, 0, &place, 1, coef(s), stages_[s].vectors, q_, sums);
                Index left = 1, bad = 0;
                settle(s, sums, &place, left, out, bad);
                if (left == 0) return bad;
            }
        }
        return 0;
    }

    // One row in coordinate form, against sparse points.
    Index run_sparse(const SparseRow<T>& row, double* out) const {
        if (!std::isfinite(row.norm)) return give_up(out);
        Buffer<T> kept(slots()), u(slots()), scratch(kernels<T>().scratch(1, 0));
        Buffer<double> sums(std::max(q_, slots()));
        std::int32_t place = 0;
        std::size_t s = 0;
        for (const Step& step : steps_) {
            const Packed<T>& plan = step.packing->plan();
            step.packing->inverted_arguments(row, u.get());
            kernels<T>().finish(plan, u.get(), scratch.get(), sums.get());
            for (Index j = 0; j < plan.vectors * W_; ++j)
                kept[step.slot + j] = j < plan.m ? static_cast<T>(sums[j]) : T(0);
            for (; s < step.end; ++s) {
                kernels<T>().stage_sums(kept.get(), 0, &place, 1, coef(s), stages_[s].vectors, q_, sums.get());
                Index left = 1, bad = 0;
                settle(s, sums.get(), &place, left, out, bad);
                if (left == 0) return bad;
            }
        }
        return 0;
    }

private:
    static constexpr Index kKeptBytes = 256 << 10;
    static constexpr std::size_t kOnStack = 32 << 10;
    static constexpr Index kScoresOnStack = 64;
    static constexpr Index kViewVectors = 4;  // of points that a row alone meets at a time

    struct Stage {
        Index size, vectors;   // points, and vectors that hold them
        Index coef;            // where coef[q][vectors W] begins
        double upper, lower;
        std::vector<double> intercept;
    };
    struct Step {
        std::unique_ptr<Packing<T>> packing;
        Index slot;        // of its first point
        std::size_t end;   // the first stage that it is not enough for
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
        constexpr double most = std::numeric_limits<double>::infinity();
        Stage stage{size, vectors, static_cast<Index>(coef_.size()), last ? -most : given.upper[s],
                    last || !given.lower ? -most : given.lower[s], {}};
        coef_.resize(coef_.size() + static_cast<std::size_t>(q_ * vectors * W_), T(0));
        for (Index o = 0; o < q_; ++o) {
            stage.intercept.push_back(given.intercept[s * q_ + o]);
            for (Index j = 0; j < std::min(size, m); ++j)
                coef_[stage.coef + o * vectors * W_ + j] = static_cast<T>(given.coef[j * columns + s * q_ + o]);
        }
        stages_.push_back(stage);
    }

    // Steps end where stages do, at whole vectors; each has its points packed about the centre of all.
    void add_steps(const Description& machine, const Packing<T>& whole) {
        std::vector<double> centre(whole.has_panels() ? static_cast<std::size_t>(plan_.p) : 0);
        for (std::size_t k = 0; k < centre.size(); ++k) centre[k] = static_cast<double>(plan_.centre[k]);
        Index from = 0;
        for (std::size_t s = 0; s < stages_.size(); ++s) {
            if (s + 1 < stages_.size() && stages_[s + 1].vectors == stages_[s].vectors) continue;
            const Index to = std::min(stages_[s].vectors * W_, machine.m);
            steps_.push_back({packing_of(machine, from, to, centre), from, s + 1});
            from = to;
        }
    }

    static std::unique_ptr<Packing<T>> packing_of(const Description& machine, Index from, Index to,
                                                  const std::vector<double>& centre) {
        Description part = machine;
        part.stages = {};
        part.m = to - from;
        part.gammas = machine.gammas + from;
        part.centre = centre.data();
        std::vector<Index> starts;
        if (machine.points) {
            part.points = machine.points + from * machine.p;
        } else {
            for (Index j = from; j <= to; ++j) starts.push_back(machine.starts[j] - machine.starts[from]);
            part.values = machine.values + machine.starts[from];
            part.columns = machine.columns + machine.starts[from];
            part.starts = starts.data();
        }
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

    // Rows that are not finite leave before the first stage.
    void drop(const T* norms, std::int32_t* place, Index& n, double* out, Index& bad) const {
        Index left = 0;
        for (Index i = 0; i < n; ++i) {
            const std::int32_t row = place[i];
            if (std::isfinite(norms[i])) place[left++] = row;
            else bad += give_up(out + row * width());
        }
        n = left;
    }

    // Writes what stage s decides of the rows in place[n] and keeps the others there; scores[n][q] lack the intercept.
    // `order`, where given, gets the old positions of those that stay.
    void settle(std::size_t s, double* scores, std::int32_t* place, Index& n, double* out, Index& bad,
                std::int32_t* order = nullptr) const {
        if (q_ == 1) settle_one(stages_[s], scores, place, n, out, bad, order);
        else settle_several(stages_[s], s + 1 == stages_.size(), scores, place, n, out, bad);
    }

    void settle_one(const Stage& stage, const double* scores, std::int32_t* place, Index& n, double* out, Index& bad,
                    std::int32_t* order) const {
        const bool last = &stage == &stages_.back();
        const double upper = stage.upper, lower = stage.lower, intercept = stage.intercept[0];
        // A threshold beyond zero is taken off, so that the sign of what is written is the answer.
        const double above = last ? 0.0 : std::min(upper, 0.0), below = last ? 0.0 : std::max(lower, 0.0);
        const double count = static_cast<double>(stage.size);
        Index left = 0;
        for (Index i = 0; i < n; ++i) {
            const std::int32_t row = place[i];
            const double score = scores[i] + intercept;
            const bool is_up = score > upper, is_down = score < lower, finite = score - score == 0;
            const double value = counts_ ? count : score - (is_up ? above : below);
            out[row] = finite ? value : std::numeric_limits<double>::quiet_NaN();
            bad += !finite;
            place[left] = row;
            if (order) order[left] = static_cast<std::int32_t>(i);
            left += finite & !is_up & !is_down & !last;
        }
        n = left;
    }

    void settle_several(const Stage& stage, bool last, double* scores, std::int32_t* place, Index& n, double* out,
                        Index& bad) const {
        Index left = 0;
        for (Index i = 0; i < n; ++i) {
            const std::int32_t row = place[i];
            double* score = scores + i * q_;
            double best = -std::numeric_limits<double>::infinity(), second = best, total = 0;
            for (Index o = 0; o < q_; ++o) {
                score[o] += stage.intercept[o];
                total += score[o] - score[o];
                second = std::max(second, std::min(best, score[o]));
                best = std::max(best, score[o]);
            }
            double* to = out + row * width();
            if (total != 0) bad += give_up(to);
            else if (!last && !(best - second > stage.upper)) place[left++] = row;
            else if (counts_) *to = static_cast<double>(stage.size);
            else std::copy(score, score + q_, to);
        }
        n = left;
    }

    Index run_in_tiles(State& state, const T* rows, Index n, double* out) const {
        const Index p = plan_.p, stride = slots();
        std::int32_t *place = state.place.get(), *met = state.met.get();
        for (Index i = 0; i < n; ++i) place[i] = met[i] = static_cast<std::int32_t>(i);
        Index packed = n, bad = 0;
        kernels<T>().pack(plan_, rows, n, false, state.packed.get(), state.norms.get());
        drop(state.norms.get(), place, n, out, bad);
        std::size_t s = 0;
        for (const Step& step : steps_) {
            if (n == 0) break;
            if (4 * n < 3 * packed) {  // enough have left that packing the rest anew pays
                for (Index i = 0; i < n; ++i) std::copy_n(rows + place[i] * p, p, state.rows.get() + i * p);
                std::copy_n(place, n, met);
                packed = n;
                kernels<T>().pack(plan_, state.rows.get(), n, false, state.packed.get(), state.norms.get());
            }
            kernels<T>().keep(step.packing->plan(), {state.packed.get(), state.norms.get(), packed, false},
                              state.scratch.get(), met, state.kept.get() + step.slot, stride);
            for (; s < step.end && n > 0; ++s) {
                kernels<T>().stage_sums(state.kept.get(), stride, place, n, coef(s), stages_[s].vectors, q_,
                                        state.scores.get());
                settle(s, state.scores.get(), place, n, out, bad);
            }
        }
        return bad;
    }

    Index run_in_lanes(State& state, const T* rows, Index n, double* out) const {
        const Index unit = kernels<T>().lane_rows, stride = (n + unit - 1) / unit * unit;
        std::int32_t *place = state.place.get(), *order = state.met.get();
        T *packed = state.packed.get(), *norms = state.norms.get(), *kept = state.kept.get();
        for (Index i = 0; i < n; ++i) place[i] = static_cast<std::int32_t>(i);
        kernels<T>().pack(plan_, rows, n, true, packed, norms);
        Index bad = 0, from = 0, all = n;
        drop(norms, place, n, out, bad);
        if (n < all) {
            std::copy_n(place, n, order);
            compact(packed, norms, kept, 0, stride, order, n);
        }
        for (std::size_t s = 0; s < stages_.size() && n > 0; ++s) {
            const Index to = stages_[s].size;
            kernels<T>().keep_in_lanes(plan_, packed, norms, n, stride, from, to, kept);
            kernels<T>().lane_sums(kept, stride, n, coef(s), to, state.scores.get());
            from = to;
            all = n;
            settle(s, state.scores.get(), place, n, out, bad, order);
            if (n > 0 && n < all) compact(packed, norms, kept, to, stride, order, n);
        }
        return bad;
    }

    // Rows in lanes move up to the front: n of them, from the positions in `order`.
    void compact(T* packed, T* norms, T* kept, Index m, Index stride, const std::int32_t* order, Index n) const {
        move_up(norms, order, n);
        for (Index k = 0; k < plan_.p; ++k) move_up(packed + k * stride, order, n);
        for (Index j = 0; j < m; ++j) move_up(kept + j * stride, order, n);
    }

    static void move_up(T* array, const std::int32_t* order, Index n) {
        for (Index i = 0; i < n; ++i) array[i] = array[order[i]];
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
