// The tasks of a training step (step_plan.h) for one instruction set. Included once by each of native/isa/*.cpp (see
// simd.h on linkage).
#pragma once

#include "../functions.h"
#include "../simd.h"
#include "../step_plan.h"

namespace {

using slim::Index;
using slim::kStepRows;
using slim::Step;
using slim::StepMap;
using slim::StepRoom;

constexpr int kLanes = Simd<float>::W;
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTile = 8, kPanel = 2;  // of 32 registers: 16 sums
#else
constexpr int kTile = 4, kPanel = 3;  // of 16 registers: 12 sums
#endif
using Floats = Vec<float>;

inline Index up_to(Index n, Index step) { return (n + step - 1) / step * step; }
inline Index panel_vectors(Index vectors, Index panel) {
    return vectors - panel * kPanel < kPanel ? vectors - panel * kPanel : kPanel;
}
inline Index panel_start(Index panel, Index rows) { return panel * kPanel * kLanes * rows; }

// Calls work.run<V>() for the number of vectors of a panel.
template <class Work>
SLIM_INLINE void with_panel(Index width, const Work& work) {
    if (width == kPanel) return work.template run<kPanel>();
    if (kPanel > 2 && width == 2) return work.template run<2>();
    work.template run<1>();
}

// sums[r][v] += Σ_k a_kr b_kv over n rows of b, which are `stride` apart; a_kr is at k `step` + r, or if `by_rows` at
// k + r `step`.
template <bool by_rows, int R, int V>
SLIM_INLINE void multiply(Index n, const float* a, Index step, const float* b, Index stride, Floats (&sums)[R][V]) {
    for (Index k = 0; k < n; ++k) {
        Floats column[V];
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) column[v] = load<float>(b + v * kLanes);
        SLIM_UNROLL
        for (int r = 0; r < R; ++r) {
            const Floats row = splat<float>(by_rows ? a[r * step] : a[r]);
            SLIM_UNROLL
            for (int v = 0; v < V; ++v) sums[r][v] = sums[r][v] + row * column[v];
        }
        a += by_rows ? 1 : step;
        b += stride;
    }
}

template <int R, int V>
SLIM_INLINE void clear(Floats (&sums)[R][V]) {
    SLIM_UNROLL
    for (int r = 0; r < R; ++r) {
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) sums[r][v] = splat<float>(0);
    }
}

// The first phase: a block of rows.
class RowBlock {
public:
    RowBlock(const Step& step, Index begin, Index end, Index block, const StepRoom& room)
        : s_(step), shape_(step.shape), room_(room), begin_(begin), n_(end - begin), up_(up_to(end - begin, kTile)),
          block_(block), own_(begin >= step.rows_up), p_up_(up_to(step.shape.p, kTile)),
          p_stride_(step.p_vectors * kLanes) {}

    void run() {
        own_ ? read_vectors() : read_rows();
        if (s_.moves) keep_tiles(room_.p, p_stride_, shape_.p, s_.p_tiles, s_.all);
        pack(room_.p, p_stride_, shape_.p, room_.p_tiles);
        measure();
        for (Index i = 0; i < up_ * shape_.q; ++i) store<float>(room_.lanes + i * kLanes, splat<float>(0));
        for (Index panel = 0; panel * kPanel < s_.vectors; ++panel)
            with_panel(panel_vectors(s_.vectors, panel), Values{*this, panel});
        if (s_.bends) return weigh();
        judge();
        for (Index i = 0; i < up_; ++i) store<float>(room_.totals + i * kLanes, splat<float>(0));
        float* sums = by_coef();
        for (Index i = 0; i < s_.vectors * shape_.q; ++i) store<float>(sums + i * kLanes, splat<float>(0));
        for (Index panel = 0; panel * kPanel < s_.vectors; ++panel)
            with_panel(panel_vectors(s_.vectors, panel), Slopes{*this, panel});
        if (own_) {  // the intercept has no penalty
            const Index m = shape_.m;
            for (Index c = 0; c < shape_.q; ++c) sums[(m / kLanes * shape_.q + c) * kLanes + m % kLanes] = 0;
        } else if (s_.moves && shape_.map != StepMap::none) {
            pull_rows();
        }
    }

private:
    // P of the rows of the batch; rows that only fill a tile are zero.
    void read_rows() {
        const Index d = shape_.d, stride = up_to(d, kTile);
        const bool projected = shape_.map == StepMap::projection;
        float* x = shape_.map == StepMap::none ? room_.p : room_.x;
        const Index x_stride = shape_.map == StepMap::none ? p_stride_ : stride;
        for (Index r = 0; r < up_; ++r) {
            float* to = x + r * x_stride;
            if (r < n_) read_row(s_.order[begin_ + r], to);
            for (Index k = r < n_ ? d : 0; k < stride; ++k) to[k] = 0;
        }
        if (shape_.map == StepMap::diagonal) {
            for (Index r = 0; r < up_; ++r) {
                for (Index k = 0; k < d; ++k) room_.p[r * p_stride_ + k] = x[r * stride + k] * s_.a[k];
                for (Index k = d; k < p_up_; ++k) room_.p[r * p_stride_ + k] = 0;
            }
        } else if (projected) {
            if (s_.moves) keep_tiles(x, stride, d, s_.x_tiles, s_.rows_up);
            pack(x, stride, d, room_.x_tiles);
            for (Index panel = 0; panel * kPanel < s_.p_vectors; ++panel)
                with_panel(panel_vectors(s_.p_vectors, panel), Project{*this, panel});
        }
    }

    void read_row(Index i, float* to) const {
        const Index d = shape_.d;
        const slim::StepRows& from = *s_.given;
        if (from.columns) {
            for (Index k = 0; k < d; ++k) to[k] = 0;
            for (Index e = from.starts[i]; e < from.starts[i + 1]; ++e)
                to[from.columns[e]] += from.in_float ? static_cast<const float*>(from.x)[e]
                                                     : static_cast<float>(static_cast<const double*>(from.x)[e]);
        } else if (from.in_float) {
            const float* x = static_cast<const float*>(from.x) + i * d;
            if (from.centre)
                for (Index k = 0; k < d; ++k) to[k] = static_cast<float>(static_cast<double>(x[k]) - from.centre[k]);
            else
                for (Index k = 0; k < d; ++k) to[k] = x[k];
        } else {
            const double* x = static_cast<const double*>(from.x) + i * d;
            if (from.centre)
                for (Index k = 0; k < d; ++k) to[k] = static_cast<float>(x[k] - from.centre[k]);
            else
                for (Index k = 0; k < d; ++k) to[k] = static_cast<float>(x[k]);
        }
    }

    // P of the rows of the penalty, which are vectors, in turn.
    void read_vectors() {
        const Index p = shape_.p;
        for (Index r = 0; r < up_; ++r) {
            float* to = room_.p + r * p_stride_;
            if (r < n_) {
                const Index u = vector_of(r), panel = u / (kPanel * kLanes), width = panel_vectors(s_.vectors, panel) * kLanes;
                const float* z = s_.z + panel_start(panel, p) + u - panel * kPanel * kLanes;
                for (Index k = 0; k < p; ++k) to[k] = z[k * width];
            }
            for (Index k = r < n_ ? p : 0; k < p_up_; ++k) to[k] = 0;
        }
    }

    Index vector_of(Index r) const { return (s_.first_own + begin_ - s_.rows_up + r) % shape_.m; }

    struct Project {
        RowBlock& b;
        Index panel;
        template <int V>
        SLIM_INLINE void run() const {
            const Index d = b.shape_.d;
            const float* a = b.s_.a + panel_start(panel, d);
            for (Index t = 0; t < b.up_; t += kTile) {
                Floats sums[kTile][V];
                clear(sums);
                multiply<false>(d, b.room_.x_tiles + t * d, kTile, a, V * kLanes, sums);
                for (int r = 0; r < kTile; ++r)
                    for (int v = 0; v < V; ++v)
                        store<float>(b.room_.p + (t + r) * b.p_stride_ + (panel * kPanel + v) * kLanes, sums[r][v]);
            }
        }
    };

    // Rows [up][stride] to tiles over their columns, of `all` rows each, where other blocks write other rows.
    void keep_tiles(const float* rows, Index stride, Index columns, float* tiles, Index all) const {
        for (Index k = 0; k < columns; k += kTile)
            for (Index r = 0; r < up_; ++r) {
                float* to = tiles + k * all + (begin_ + r) * kTile;
                for (int i = 0; i < kTile; ++i) to[i] = rows[r * stride + k + i];
            }
    }

    // Rows [up][stride] to tiles of rows: tile[column][kTile].
    void pack(const float* rows, Index stride, Index columns, float* packed) const {
        for (Index t = 0; t < up_; t += kTile) {
            float* to = packed + t * columns;
            const float* from = rows + t * stride;
            for (Index k = 0; k < columns; ++k) {
                SLIM_UNROLL
                for (int r = 0; r < kTile; ++r) to[k * kTile + r] = from[r * stride + k];
            }
        }
    }

    void measure() {
        for (Index r = 0; r < up_; ++r) {
            const float* row = room_.p + r * p_stride_;
            double sum[4] = {};
            Index k = 0;
            for (; k + 4 <= shape_.p; k += 4)
                for (int i = 0; i < 4; ++i) sum[i] += static_cast<double>(row[k + i]) * static_cast<double>(row[k + i]);
            for (; k < shape_.p; ++k) sum[0] += static_cast<double>(row[k]) * static_cast<double>(row[k]);
            room_.norms[r] = static_cast<float>((sum[0] + sum[1]) + (sum[2] + sum[3]));
        }
    }

    float* weights(Index panel) const { return s_.s + panel_start(panel, s_.all) ; }
    float* by_coef() const { return s_.by_coef + block_ * s_.vectors * shape_.q * kLanes; }

    // Kernel values of a panel, and their part of the scores.
    struct Values {
        RowBlock& b;
        Index panel;
        template <int V>
        SLIM_INLINE void run() const {
            const Step& s = b.s_;
            const Index p = b.shape_.p, q = b.shape_.q, vector = panel * kPanel;
            const float* z = s.z + panel_start(panel, p);
            const float* coef = s.coef + vector * q * kLanes;
            const Floats twice = splat<float>(static_cast<float>(2.0 * 1.4426950408889634 * b.shape_.gamma));
            Floats gain[V], bias[V];
            for (int v = 0; v < V; ++v) {
                gain[v] = load<float>(s.gain + (vector + v) * kLanes);
                bias[v] = load<float>(s.bias + (vector + v) * kLanes);
            }
            for (Index t = 0; t < b.up_; t += kTile) {
                Floats sums[kTile][V];
                clear(sums);
                multiply<false>(p, b.room_.p_tiles + t * p, kTile, z, V * kLanes, sums);
                float* out = b.weights(panel) + (b.begin_ + t) * V * kLanes;
                SLIM_UNROLL
                for (int r = 0; r < kTile; ++r) {
                    const Floats norm = splat<float>(b.room_.norms[t + r]);
                    SLIM_UNROLL
                    for (int v = 0; v < V; ++v) {
                        sums[r][v] = exp2_vector<float>(twice * sums[r][v] + (gain[v] * norm + bias[v]));
                        store<float>(out + (r * V + v) * kLanes, sums[r][v]);
                    }
                }
                float* lanes = b.room_.lanes + t * q * kLanes;
                for (Index c = 0; c < q; ++c) {
                    Floats weight[V];
                    SLIM_UNROLL
                    for (int v = 0; v < V; ++v) weight[v] = load<float>(coef + (v * q + c) * kLanes);
                    SLIM_UNROLL
                    for (int r = 0; r < kTile; ++r) {
                        float* lane = lanes + (r * q + c) * kLanes;
                        Floats sum = load<float>(lane);
                        SLIM_UNROLL
                        for (int v = 0; v < V; ++v) sum = sum + sums[r][v] * weight[v];
                        store<float>(lane, sum);
                    }
                }
            }
        }
    };

    // The losses of the scores, and their derivatives by the scores in room_.f; of the penalty for its rows.
    void judge() {
        const Index q = shape_.q;
        double total = 0;
        const float part = 1.0f / static_cast<float>(s_.rows);
        const float times = s_.own > 0 ? static_cast<float>(shape_.m) / static_cast<float>(s_.own) : 0.0f;
        for (Index r = 0; r < up_; ++r)
            for (Index c = 0; c < q; ++c) {
                float* f = room_.f + r * q + c;
                if (r >= n_) *f = 0;
                else if (own_) *f = penalise(r, c, score(r, c), times, total);
                else *f = part * lose(s_.order[begin_ + r], c, score(r, c), total);
            }
        s_.loss[block_] = own_ ? total : total * static_cast<double>(part);
    }

    float score(Index r, Index c) const {
        return lane_sum<float>(load<float>(room_.lanes + (r * shape_.q + c) * kLanes));
    }

    float lose(Index i, Index c, float score, double& total) const {
        const slim::StepRows& from = *s_.given;
        float by_f = 0;
        for (Index copy = 0; copy < shape_.copies; ++copy) {
            const Index at = (copy * from.n + i) * shape_.q + c;
            const float xi = from.offset[at] - from.sign[at] * score;
            if (shape_.smooth > 0) {
                const float raw = 0.5f + xi / (2.0f * shape_.smooth), share = raw < 0 ? 0.0f : raw > 1 ? 1.0f : raw;
                total += static_cast<double>(from.cost[at] * share) *
                         static_cast<double>(xi + shape_.smooth * (1.0f - share));
                by_f -= from.sign[at] * from.cost[at] * share;
                continue;
            }
            if (!(xi > 0)) continue;
            const float pull = shape_.power == 2 ? from.cost[at] * xi : from.cost[at];
            total += static_cast<double>(pull) * static_cast<double>(xi);
            by_f -= static_cast<float>(shape_.power) * from.sign[at] * pull;
        }
        return by_f;
    }

    float penalise(Index r, Index c, float score, float times, double& total) const {
        const Index u = vector_of(r), m = shape_.m, q = shape_.q;
        const float beta = s_.coef[(u / kLanes * q + c) * kLanes + u % kLanes];
        const float b = s_.coef[(m / kLanes * q + c) * kLanes + m % kLanes];
        const float by_f = times * s_.scales.ridge[c] * beta;
        total += 0.5 * static_cast<double>(by_f) * static_cast<double>(score - b);
        return by_f;
    }

    // Kernel values times the root of their row's weight, as S and in tiles, for the curvature. The weight is the mean cost
    // of the outputs at which the row has a loss; rows that only fill a tile have none.
    void weigh() {
        for (Index r = 0; r < up_; ++r) {
            float active = 0;
            for (Index c = 0; r < n_ && c < shape_.q; ++c)
                active += active_cost(s_.order[begin_ + r], c, score(r, c));
            active /= static_cast<float>(shape_.q);
            room_.norms[r] = r >= n_ ? 0.0f : active > s_.damping ? active : s_.damping;
        }
        for (Index panel = 0; panel * kPanel < s_.vectors; ++panel)
            with_panel(panel_vectors(s_.vectors, panel), Weigh{*this, panel});
    }

    float active_cost(Index i, Index c, float score) const {
        const slim::StepRows& from = *s_.given;
        float cost = 0;
        for (Index copy = 0; copy < shape_.copies; ++copy) {
            const Index at = (copy * from.n + i) * shape_.q + c;
            if (from.offset[at] - from.sign[at] * score > 0) cost += from.cost[at];
        }
        return cost;
    }

    struct Weigh {
        RowBlock& b;
        Index panel;
        template <int V>
        SLIM_INLINE void run() const {
            const Step& s = b.s_;
            for (Index r = 0; r < b.up_; ++r) {
                float* at = b.weights(panel) + (b.begin_ + r) * V * kLanes;
                const Floats weight = square_root(splat<float>(b.room_.norms[r]));
                for (int v = 0; v < V; ++v) store<float>(at + v * kLanes, weight * load<float>(at + v * kLanes));
                for (Index i = 0; i < V * kLanes; ++i) {
                    const Index slot = panel * kPanel * kLanes + i;
                    s.f_tiles[slot / kTile * kTile * s.all + (b.begin_ + r) * kTile + slot % kTile] = at[i];
                }
            }
        }
    };

    // Kernel values of a panel become the weights S = k′ Σ_c ∂/∂f_c β_c; sums over rows for the coefficients.
    struct Slopes {
        RowBlock& b;
        Index panel;
        template <int V>
        SLIM_INLINE void run() const {
            const Step& s = b.s_;
            const Index q = b.shape_.q, vector = panel * kPanel;
            const float* coef = s.coef + vector * q * kLanes;
            float* by_coef = b.by_coef() + vector * q * kLanes;
            Floats slope[V];
            for (int v = 0; v < V; ++v) slope[v] = load<float>(s.slope + (vector + v) * kLanes);
            constexpr int group = 4;  // rows that share the loads of coefficients
            for (Index r = 0; r < b.up_; r += group) {
                float* at = b.weights(panel) + (b.begin_ + r) * V * kLanes;
                Floats k[group][V], weight[group][V];
                SLIM_UNROLL
                for (int i = 0; i < group; ++i) {
                    SLIM_UNROLL
                    for (int v = 0; v < V; ++v) {
                        k[i][v] = load<float>(at + (i * V + v) * kLanes);
                        weight[i][v] = splat<float>(0);
                    }
                }
                for (Index c = 0; c < q; ++c) {
                    SLIM_UNROLL
                    for (int v = 0; v < V; ++v) {
                        const Floats beta = load<float>(coef + (v * q + c) * kLanes);
                        Floats sum = load<float>(by_coef + (v * q + c) * kLanes);
                        SLIM_UNROLL
                        for (int i = 0; i < group; ++i) {
                            const Floats by_f = splat<float>(b.room_.f[(r + i) * q + c]);
                            weight[i][v] = weight[i][v] + by_f * beta;
                            sum = sum + by_f * k[i][v];
                        }
                        store<float>(by_coef + (v * q + c) * kLanes, sum);
                    }
                }
                SLIM_UNROLL
                for (int i = 0; i < group; ++i) {
                    Floats total = load<float>(b.room_.totals + (r + i) * kLanes);
                    SLIM_UNROLL
                    for (int v = 0; v < V; ++v) {
                        const Floats out = k[i][v] * weight[i][v] * slope[v];
                        store<float>(at + (i * V + v) * kLanes, out);
                        total = total + out;
                    }
                    store<float>(b.room_.totals + (r + i) * kLanes, total);
                }
            }
        }
    };

    // ∂/∂P = 2 (P total − S Z), for the gradient of the map.
    void pull_rows() {
        for (Index panel = 0; panel * kPanel < s_.p_vectors; ++panel)
            with_panel(panel_vectors(s_.p_vectors, panel), Pull{*this, panel});
        if (shape_.map != StepMap::diagonal) return;
        float* sums = s_.by_scale + block_ * shape_.d;
        const Index stride = up_to(shape_.d, kTile);
        for (Index k = 0; k < shape_.d; ++k) sums[k] = 0;
        for (Index r = 0; r < n_; ++r)
            for (Index k = 0; k < shape_.d; ++k) sums[k] += room_.x[r * stride + k] * room_.p[r * p_stride_ + k];
    }

    struct Pull {
        RowBlock& b;
        Index panel;
        template <int V>
        SLIM_INLINE void run() const {
            const Step& s = b.s_;
            const Index slots = s.vectors * kLanes;
            const float* z = s.z_rows + panel_start(panel, slots);
            const bool diagonal = b.shape_.map == StepMap::diagonal;
            for (Index t = 0; t < b.up_; t += kTile) {
                Floats sums[kTile][V];
                clear(sums);
                for (Index from = 0; from * kPanel < s.vectors; ++from) {
                    const Index width = panel_vectors(s.vectors, from) * kLanes;
                    multiply<true>(width, b.weights(from) + (b.begin_ + t) * width, width,
                                   z + from * kPanel * kLanes * V * kLanes, V * kLanes, sums);
                }
                for (int r = 0; r < kTile; ++r) {
                    const Floats total = splat<float>(lane_sum<float>(load<float>(b.room_.totals + (t + r) * kLanes)));
                    float* row = b.room_.p + (t + r) * b.p_stride_ + panel * kPanel * kLanes;
                    float* out = diagonal ? row : s.by_p + panel_start(panel, s.rows_up) + (b.begin_ + t + r) * V * kLanes;
                    for (int v = 0; v < V; ++v) {
                        const Floats half = load<float>(row + v * kLanes) * total - sums[r][v];
                        store<float>(out + v * kLanes, half + half);
                    }
                }
            }
        }
    };

    const Step& s_;
    const slim::StepShape& shape_;
    const StepRoom& room_;
    Index begin_, n_, up_, block_;
    bool own_;
    Index p_up_, p_stride_;
};

void step_rows(const Step& step, Index begin, Index end, Index block, const StepRoom& room) {
    RowBlock(step, begin, end, block, room).run();
}

// A step of Adam on x: `gradient` is in units of `unit`, `far` is the length of a full step.
SLIM_INLINE Floats adam(const Step& s, float* x, float* mean, float* square, Floats gradient, Floats far) {
    const Floats g = load<float>(mean) + splat<float>(slim::kMomentum) * (gradient - load<float>(mean));
    const Floats h = load<float>(square) + splat<float>(slim::kSquares) * (gradient * gradient - load<float>(square));
    store<float>(mean, g);
    store<float>(square, h);
    const Floats root = square_root(h * splat<float>(s.square_part)) + splat<float>(slim::kLeastRoot);
    const Floats moved = load<float>(x) - g / root * far;
    store<float>(x, moved);
    return moved;
}

// The second phase: a panel of vectors.
struct MoveVectors {
    const Step& s;
    Index panel;

    template <int V>
    SLIM_INLINE void run() const {
        const Index p = s.shape.p;
        const float* S = s.s + panel_start(panel, s.all);
        Floats total[V];
        for (int v = 0; v < V; ++v) total[v] = splat<float>(0);
        for (Index i = 0; i < s.all; ++i)
            for (int v = 0; v < V; ++v) total[v] = total[v] + load<float>(S + (i * V + v) * kLanes);
        for (Index k = 0; k < p; k += kTile) {
            if (p - k <= kTile / 2) move<kTile / 2, V>(k, S, total);
            else move<kTile, V>(k, S, total);
        }
    }

    template <int R, int V>
    SLIM_INLINE void move(Index k, const float* S, const Floats (&total)[V]) const {
        const Index p = s.shape.p;
        Floats sums[R][V];
        clear(sums);
        multiply<false>(s.all, s.p_tiles + k * s.all, kTile, S, V * kLanes, sums);
        const Floats unit = splat<float>(s.by_z ? 2.0f : 2.0f * s.scales.vectors_unit);
        const Floats far = splat<float>(s.scales.vectors_unit * s.scales.vectors_rate * s.share * s.mean_part);
        for (int r = 0; r < R && k + r < p; ++r)
            for (int v = 0; v < V; ++v) {
                const Index at = panel_start(panel, p) + ((k + r) * V + v) * kLanes;
                const Floats gradient = unit * (load<float>(s.z + at) * total[v] - sums[r][v]);
                if (s.by_z) {
                    store<float>(s.by_z + at, gradient);
                    continue;
                }
                const Floats moved = adam(s, s.z + at, s.z_mean + at, s.z_square + at, gradient, far);
                if (s.z_rows) keep_row(k + r, (panel * kPanel + v) * kLanes, moved);
            }
    }

    void keep_row(Index k, Index first, Floats values) const {
        const Index to = k / (kPanel * kLanes), width = panel_vectors(s.p_vectors, to) * kLanes;
        float* at = s.z_rows + panel_start(to, s.vectors * kLanes) + first * width + k - to * kPanel * kLanes;
        float lane[kLanes];
        store<float>(lane, values);
        for (int i = 0; i < kLanes; ++i) at[i * width] = lane[i];
    }
};

// The biases of a panel of vectors, from their norms: sums of kTile features, added up.
struct MeasureVectors {
    const Step& s;
    Index panel;

    template <int V>
    SLIM_INLINE void run() const {
        const Index p = s.shape.p;
        for (int v = 0; v < V; ++v) {
            const float* z = s.z + panel_start(panel, p) + v * kLanes;
            Floats norm = splat<float>(0);
            for (Index k = 0; k < p; k += kTile) {
                Floats part = splat<float>(0);
                for (Index i = k; i < k + kTile && i < p; ++i)
                    part = part + load<float>(z + i * V * kLanes) * load<float>(z + i * V * kLanes);
                norm = norm + part;
            }
            float lane[kLanes];
            store<float>(lane, norm);
            const Index first = (panel * kPanel + v) * kLanes;
            for (int i = 0; i < kLanes && first + i < s.shape.m; ++i) s.bias[first + i] = s.gain[0] * lane[i];
        }
    }
};

void step_measure(const Step& step, Index panel) {
    with_panel(panel_vectors(step.vectors, panel), MeasureVectors{step, panel});
}

void step_vectors(const Step& step, Index panel) {
    with_panel(panel_vectors(step.vectors, panel), MoveVectors{step, panel});
    step_measure(step, panel);
}

// The second phase: kTile features of a projection, and one panel of its dimensions.
struct MoveMap {
    const Step& s;
    Index first, panel;

    template <int V>
    SLIM_INLINE void run() const {
        const Index d = s.shape.d;
        const float* by_p = s.by_p + panel_start(panel, s.rows_up);
        Floats sums[kTile][V];
        clear(sums);
        multiply<false>(s.rows_up, s.x_tiles + first * s.rows_up, kTile, by_p, V * kLanes, sums);
        for (int r = 0; r < kTile && first + r < d; ++r) {
            const Index j = first + r;
            const float unit = s.scales.map_unit[j];
            const Floats far = splat<float>(unit * s.scales.map_rate * s.share * s.mean_part);
            for (int v = 0; v < V; ++v) {
                const Index at = panel_start(panel, d) + (j * V + v) * kLanes;
                Floats gradient = sums[r][v];
                if (s.by_a) {
                    store<float>(s.by_a + at, gradient);
                    continue;
                }
                if (s.pull_start) {
                    const Floats away = load<float>(s.a + at) - splat<float>(s.pull_t) * load<float>(s.pull_start + at);
                    gradient = gradient + splat<float>(2.0f * s.scales.pull_scale * s.scales.pull_weights[j]) * away;
                }
                adam(s, s.a + at, s.a_mean + at, s.a_square + at, splat<float>(unit) * gradient, far);
            }
        }
    }
};

void step_map(const Step& step, Index tile) {
    for (Index panel = 0; panel * kPanel < step.p_vectors; ++panel)
        with_panel(panel_vectors(step.p_vectors, panel), MoveMap{step, tile * kTile, panel});
}

// The second phase: the Newton move of a panel of coefficients.
struct MoveCoefficients {
    const Step& s;
    Index panel;

    template <int V>
    SLIM_INLINE void run() const {
        const Index q = s.shape.q, n = s.shape.m + 1;
        const Floats rate = splat<float>(s.scales.newton_rate * s.calm);
        for (Index c = 0; c < q; c += kTile) {
            if (q - c == 1) move<1, V>(c, n, q, rate);
            else move<kTile, V>(c, n, q, rate);
        }
    }

    template <int R, int V>
    SLIM_INLINE void move(Index c, Index n, Index q, Floats rate) const {
        Floats sums[R][V];
        clear(sums);
        multiply<false>(n, s.coef_mean + c * n, kTile, s.inverse + panel_start(panel, n), V * kLanes, sums);
        for (int r = 0; r < R && c + r < q; ++r)
            for (int v = 0; v < V; ++v) {
                float* at = s.coef + ((panel * kPanel + v) * q + c + r) * kLanes;
                store<float>(at, load<float>(at) - rate * sums[r][v]);
            }
    }
};

void step_coefficients(const Step& step, Index panel) {
    with_panel(panel_vectors(step.vectors, panel), MoveCoefficients{step, panel});
}

// What the rows give to a panel of the curvature, from the first slot to the last one of the panel.
struct AddBend {
    const Step& s;
    Index panel;

    template <int V>
    SLIM_INLINE void run() const {
        const Index n = s.shape.m + 1, slots = s.vectors * kLanes, first = panel * kPanel * kLanes;
        const Index last = n < first + V * kLanes ? n : first + V * kLanes;
        const float* S = s.s + panel_start(panel, s.all);
        for (Index i = 0; i < last; i += kTile) {
            Floats sums[kTile][V];
            clear(sums);
            multiply<false>(s.all, s.f_tiles + i * s.all, kTile, S, V * kLanes, sums);
            for (int r = 0; r < kTile && i + r < n; ++r)
                for (int v = 0; v < V; ++v) {
                    float* at = s.bend + (i + r) * slots + first + v * kLanes;
                    store<float>(at, load<float>(at) + sums[r][v]);
                }
        }
    }
};

void step_bend(const Step& step, Index panel) {
    with_panel(panel_vectors(step.vectors, panel), AddBend{step, panel});
}

// The parts of a room: x, its tiles, P, its tiles, norms, lanes of scores, ∂/∂f, lanes of Σ S.
inline void room_sizes(const Step& step, Index (&sizes)[8]) {
    const Index d_up = up_to(step.shape.d, kLanes), p_up = step.p_vectors * kLanes, q = step.shape.q, n = kStepRows;
    const bool mapped = step.shape.map != StepMap::none;
    const Index all[8] = {mapped ? n * d_up : 0, mapped ? n * d_up : 0, n * p_up + kLanes, n * p_up, n, n * q * kLanes,
                          up_to(n * q, kLanes), n * kLanes};
    for (int i = 0; i < 8; ++i) sizes[i] = up_to(all[i], 16);
}

Index step_room(const Step& step) {
    Index sizes[8], sum = 0;
    room_sizes(step, sizes);
    for (Index size : sizes) sum += size;
    return sum;
}

StepRoom step_place(const Step& step, float* numbers) {
    Index sizes[8];
    room_sizes(step, sizes);
    float* at[8];
    for (int i = 0; i < 8; ++i) {
        at[i] = numbers;
        numbers += sizes[i];
    }
    return {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]};
}

constexpr slim::StepKernels kStepKernels{kLanes, kTile, kPanel, &step_rows, &step_vectors, &step_measure,
                                         &step_map, &step_coefficients, &step_bend, &step_room, &step_place};

}  // namespace
