// The kernels of one instruction set. Included once by each of native/isa/*.cpp (see simd.h on linkage).
//
// A block of rows is evaluated with one panel of points at a time. First the arguments u of all rows and the panel's
// points are computed, tile by tile: R rows × V vectors of sums in registers, with one load per vector and one broadcast
// per row for each feature. Then the kernel function is applied and the head's sums are taken, row by row. Sums over
// features and over points have a fixed order, so that the result of a row does not depend on the other rows.
#pragma once

#include "../functions.h"
#include "../plan.h"
#include "../simd.h"

namespace {

using slim::Form;
using slim::Function;
using slim::Index;
using slim::Packed;
using slim::Rows;
using slim::SparseRow;

#if defined(__AVX512F__)
constexpr int kTileRows = 12;  // of 32 registers: 24 sums, two vectors of points, a row's value
#elif defined(__aarch64__)
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 6;  // of 16 registers: 12 sums
#endif
constexpr int kNarrow = 4;                 // panels at a time for a single row, so that enough sums are computed at once
constexpr int kLaneVectors = 3;            // vectors of rows that are evaluated together
constexpr Index kLanePoints = 256;         // after which lanes are added in double, so that rounding errors do not grow
constexpr Index kFeatureBytes = 24 << 10;  // of a panel that stay in the first-level cache while all rows are read

template <class K>
constexpr bool is_exp2 = false;
template <class T>
constexpr bool is_exp2<Exp2<T>> = true;

// The contribution of one feature to an argument.
template <Form F, class T>
SLIM_INLINE Vec<T> with_feature(Vec<T> sum, Vec<T> z, Vec<T> x) {
    if (F == Form::dot) return sum + z * x;
    const Vec<T> difference = x - z;
    return F == Form::square ? sum + difference * difference : sum + absolute<T>(difference);
}

// Adds features [from, to) of R rows × V vectors (V/2 panels, or half a panel) to u[R][stride], or starts it.
template <Form F, int R, int V, class T>
void feature_tile(const Packed<T>& plan, Index vector, Index from, Index to, const T* x, const T* norms, T* u,
                  Index stride) {
    constexpr int W = Simd<T>::W;
    constexpr int pair = V == 1 ? 1 : 2;  // vectors of a panel
    Vec<T> c[R][V];
    if (from > 0) {
        SLIM_UNROLL
        for (int r = 0; r < R; ++r) {
            SLIM_UNROLL
            for (int v = 0; v < V; ++v) c[r][v] = load<T>(u + r * stride + v * W);
        }
    } else {
        Vec<T> bias[V], gain[V];
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) bias[v] = load<T>(plan.bias + (vector + v) * W);
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) gain[v] = load<T>(plan.gain + (vector + v) * W);
        SLIM_UNROLL
        for (int r = 0; r < R; ++r) {
            SLIM_UNROLL
            for (int v = 0; v < V; ++v) c[r][v] = F == Form::dot ? bias[v] + gain[v] * splat<T>(norms[r]) : splat<T>(0);
        }
    }
    const Index panel = static_cast<Index>(pair) * W * plan.p;
    const T* z = plan.panels + vector * W * plan.p + from * pair * W;
    x += from * R;
    for (Index k = from; k < to; ++k) {
        Vec<T> point[V];
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) point[v] = load<T>(z + (v / pair) * panel + (v % pair) * W);
        SLIM_UNROLL
        for (int r = 0; r < R; ++r) {
            const Vec<T> row = splat<T>(x[r]);
            SLIM_UNROLL
            for (int v = 0; v < V; ++v) c[r][v] = with_feature<F, T>(c[r][v], point[v], row);
        }
        x += R;
        z += pair * W;
    }
    SLIM_UNROLL
    for (int r = 0; r < R; ++r) {
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) store<T>(u + r * stride + v * W, c[r][v]);
    }
}

// Computes u[n][V W] for all rows and V vectors.
template <Form F, int V, class T>
void panel_arguments(const Packed<T>& plan, const Rows<T>& rows, Index vector, T* u) {
    constexpr Index stride = V * Simd<T>::W;
    const Index share = kFeatureBytes / static_cast<Index>(stride * sizeof(T));
    const Index parts = (plan.p + share - 1) / share;
    for (Index part = 0; part < parts; ++part) {
        const Index from = plan.p * part / parts, to = plan.p * (part + 1) / parts;
        Index r = 0;
        for (; r + kTileRows <= rows.n; r += kTileRows)
            feature_tile<F, kTileRows, V, T>(plan, vector, from, to, rows.packed + r * plan.p, rows.norms + r,
                                             u + r * stride, stride);
        for (; r + 4 <= rows.n; r += 4)
            feature_tile<F, 4, V, T>(plan, vector, from, to, rows.packed + r * plan.p, rows.norms + r, u + r * stride,
                                     stride);
        for (; r < rows.n; ++r)
            feature_tile<F, 1, V, T>(plan, vector, from, to, rows.packed + r * plan.p, rows.norms + r, u + r * stride,
                                     stride);
    }
}

// Adds the shares of the look-ups' rows to u[n][stride], for V vectors.
template <int V, class T>
SLIM_INLINE void add_shares(const Packed<T>& plan, const Rows<T>& rows, Index vector, T* u, Index stride) {
    constexpr int W = Simd<T>::W;
    const std::int32_t* code = rows.codes;
    for (Index r = 0; r < rows.n; ++r) {
        Vec<T> c[V];
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) c[v] = load<T>(u + r * stride + v * W);
        for (Index i = 0; i < rows.lookups; ++i) {
            const T* share = plan.table + (*code++ * plan.vectors + vector) * W;
            SLIM_UNROLL
            for (int v = 0; v < V; ++v) c[v] = c[v] + load<T>(share + v * W);
        }
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) store<T>(u + r * stride + v * W, c[v]);
    }
}

// The arguments of row r and vector v of the panel, for the second step.
template <class T>
struct Arguments {
    const T* u;
    Index stride;
    SLIM_INLINE Vec<T> operator()(Index r, int v) const { return load<T>(u + r * stride + v * Simd<T>::W); }
    Arguments from(int v) const { return {u + v * Simd<T>::W, stride}; }
};

// lanes[row][q] += kernel values × coefficients, for V vectors of the same block; the first vectors start the lanes.
template <class K, int V, bool first, class T>
SLIM_INLINE void add_to_lanes(const Packed<T>& plan, Index vector, Index n, Arguments<T> source, Vec<T>* lanes) {
    constexpr int W = Simd<T>::W;
    const K kernel(plan.degree);
    const bool scaled = plan.form != Form::dot;  // distances are not yet multiplied by their factor
    const Index q = plan.q;
    const T* coef = plan.coef + vector * q * W;
    Vec<T> gain[V];
    for (int v = 0; v < V; ++v) gain[v] = load<T>(plan.gain + (vector + v) * W);
    if (q == 1) {
        for (Index r = 0; r < n; ++r) {
            Vec<T> sum = first ? splat<T>(0) : lanes[r];
            SLIM_UNROLL
            for (int v = 0; v < V; ++v) {
                const Vec<T> u = source(r, v);
                sum += kernel(scaled ? u * gain[v] : u) * load<T>(coef + v * W);
            }
            lanes[r] = sum;
        }
        return;
    }
    constexpr int group = 4;  // rows that share the loads of the coefficients
    for (Index r = 0; r < n; r += group) {
        const int some = n - r < group ? static_cast<int>(n - r) : group;
        Vec<T> e[group][V];
        for (int i = 0; i < some; ++i)
            for (int v = 0; v < V; ++v) {
                const Vec<T> u = source(r + i, v);
                e[i][v] = kernel(scaled ? u * gain[v] : u);
            }
        for (Index o = 0; o < q; ++o)
            for (int i = 0; i < some; ++i) {
                Vec<T> sum = first ? splat<T>(0) : lanes[(r + i) * q + o];
                SLIM_UNROLL
                for (int v = 0; v < V; ++v) sum += e[i][v] * load<T>(coef + (v * q + o) * W);
                lanes[(r + i) * q + o] = sum;
            }
    }
}

// Adds the lanes of one block of the head to sums[row][G][q].
template <class T>
void empty_lanes(const Packed<T>& plan, Index block, Index n, Vec<T>* lanes, double* sums) {
    for (Index r = 0; r < n; ++r)
        for (Index o = 0; o < plan.q; ++o)
            sums[(r * plan.blocks + block) * plan.q + o] += static_cast<double>(lane_sum<T>(lanes[r * plan.q + o]));
}

template <class K, class T>
struct Sums {
    const Packed<T>& plan;
    Index n;
    Vec<T>* lanes;
    double* sums;
    Index held = 0;   // vectors in the lanes
    Index block = 0;  // their block

    // Lanes are emptied often, so that their rounding errors do not grow with the number of points.
    void make_room(Index next) {
        if (held > 0 && (next != block || held >= kLanePoints)) close();
        block = next;
    }

    template <int V>
    void take(Index vector, Arguments<T> source) {
        if constexpr (V > 1) {
            if (plan.block[vector] != plan.block[vector + V - 1]) {
                for (int v = 0; v < V; ++v) take<1>(vector + v, source.from(v));
                return;
            }
        }
        make_room(plan.block[vector]);
        if (held == 0) add_to_lanes<K, V, true, T>(plan, vector, n, source, lanes);
        else add_to_lanes<K, V, false, T>(plan, vector, n, source, lanes);
        held += V;
    }

    void close() {
        if (held > 0) empty_lanes<T>(plan, block, n, lanes, sums);
        held = 0;
    }
};

// A mirror head: lanes[row][q] += d(x, βz) × coefficients over the sites of each vector of points.
template <class K, class T>
struct Distances {
    const Packed<T>& plan;
    const Rows<T>& rows;
    Vec<T>* lanes;
    double* sums;
    Index held = 0;  // layers in the lanes

    template <int V>
    void take(Index vector, Arguments<T> source) {
        for (int v = 0; v < V; ++v) {
            if (held >= kLanePoints) close();
            if (held == 0)
                for (Index i = 0; i < rows.n * plan.q; ++i) lanes[i] = splat<T>(0);
            add(vector + v, source.from(v));
            held += plan.layers[vector + v + 1] - plan.layers[vector + v];
        }
    }

    void add(Index vector, Arguments<T> source) {
        constexpr int W = Simd<T>::W;
        const K kernel(plan.degree);
        const bool scaled = plan.form != Form::dot;
        const Vec<T> gain = load<T>(plan.gain + vector * W), zero = splat<T>(0);
        for (Index r = 0; r < rows.n; ++r) {
            const Vec<T> u = scaled ? source(r, 0) * gain : source(r, 0);
            const Vec<T> k = is_exp2<K> ? exp2_less_one<T>(u) : kernel(u);
            const Vec<T> own = is_exp2<K> ? zero : kernel(splat<T>(plan.own_gain * rows.norms[r] + plan.own_bias));
            for (Index l = plan.layers[vector]; l < plan.layers[vector + 1]; ++l) {
                const Vec<T> square = load<T>(plan.scale + l * W) * k + load<T>(plan.square + l * W) + own;
                const Vec<T> d = square_root(larger(zero, square));  // NaN stays NaN
                for (Index o = 0; o < plan.q; ++o) lanes[r * plan.q + o] += d * load<T>(plan.coef + (l * plan.q + o) * W);
            }
        }
    }

    void close() {
        if (held > 0) empty_lanes<T>(plan, 0, rows.n, lanes, sums);
        held = 0;
    }
};

// Writes kernel values, [n][m].
template <class K, class T, class Out>
struct Values {
    const Packed<T>& plan;
    Index n;
    Out* values;

    template <int V>
    void take(Index vector, Arguments<T> source) {
        constexpr int W = Simd<T>::W;
        const K kernel(plan.degree);
        const bool scaled = plan.form != Form::dot;
        for (int v = 0; v < V; ++v) {
            const Vec<T> gain = load<T>(plan.gain + (vector + v) * W);
            const Index start = (vector + v) * W;
            const Index width = plan.m - start < W ? plan.m - start : W;
            for (Index r = 0; r < n; ++r) {
                const Vec<T> u = source(r, v);
                T lane[W];
                store<T>(lane, kernel(scaled ? u * gain : u));
                for (Index i = 0; i < width; ++i) values[r * plan.m + start + i] = static_cast<Out>(lane[i]);
            }
        }
    }

    void close() {}
};

// Evaluates all rows with all vectors.
template <Form F, class T, class Sink>
void meet_in_tiles(const Packed<T>& plan, const Rows<T>& rows, T* u, Sink& sink) {
    constexpr int W = Simd<T>::W;
    constexpr Index wide = 2 * kNarrow * W;
    Index vector = 0;
    if (rows.n == 1)
        for (; vector + 2 * kNarrow <= plan.vectors; vector += 2 * kNarrow) {
            feature_tile<F, 1, 2 * kNarrow, T>(plan, vector, 0, plan.p, rows.packed, rows.norms, u, wide);
            if (rows.codes) add_shares<2 * kNarrow, T>(plan, rows, vector, u, wide);
            for (int i = 0; i < 2 * kNarrow; i += 2) sink.template take<2>(vector + i, Arguments<T>{u + i * W, wide});
        }
    for (; vector + 2 <= plan.vectors; vector += 2) {
        panel_arguments<F, 2, T>(plan, rows, vector, u);
        if (rows.codes) add_shares<2, T>(plan, rows, vector, u, 2 * W);
        sink.template take<2>(vector, Arguments<T>{u, 2 * W});
    }
    if (vector < plan.vectors) {
        panel_arguments<F, 1, T>(plan, rows, vector, u);
        if (rows.codes) add_shares<1, T>(plan, rows, vector, u, W);
        sink.template take<1>(vector, Arguments<T>{u, W});
    }
}

// Exponentials have dot products or distances as arguments, other functions only dot products.
template <class K, class T, class Sink>
void meet(const Packed<T>& plan, const Rows<T>& rows, T* u, Sink sink) {
    if (plan.form == Form::dot) meet_in_tiles<Form::dot, T>(plan, rows, u, sink);
    if constexpr (is_exp2<K>) {
        if (plan.form == Form::square) meet_in_tiles<Form::square, T>(plan, rows, u, sink);
        if (plan.form == Form::manhattan) meet_in_tiles<Form::manhattan, T>(plan, rows, u, sink);
    }
    sink.close();
}

// Few features and one output: one row per lane, so that no sums over lanes are needed, and the rows stay in registers
// while all points are read.
template <Form F, int P, class T>
void rows_in_lanes(const Packed<T>& plan, const Rows<T>& rows, double* sums) {
    constexpr int W = Simd<T>::W;
    constexpr int width = kLaneVectors * W;
    const Index stride = (rows.n + width - 1) / width * width;
    for (Index r = 0; r < rows.n; r += width) {
        Vec<T> x[P][kLaneVectors], norm[kLaneVectors];
        for (int i = 0; i < kLaneVectors; ++i) {
            norm[i] = load<T>(rows.norms + r + i * W);
            for (int k = 0; k < P; ++k) x[k][i] = load<T>(rows.packed + k * stride + r + i * W);
        }
        double total[width] = {};
        for (Index begin = 0; begin < plan.m; begin += kLanePoints) {
            const Index end = begin + kLanePoints < plan.m ? begin + kLanePoints : plan.m;
            Vec<T> sum[kLaneVectors];
            for (int i = 0; i < kLaneVectors; ++i) sum[i] = splat<T>(0);
            const T* point = plan.few + begin * (P + 3);
            for (Index j = begin; j < end; ++j, point += P + 3) {
                SLIM_UNROLL
                for (int i = 0; i < kLaneVectors; ++i) {
                    Vec<T> u = F == Form::dot ? splat<T>(point[P]) + splat<T>(point[P + 1]) * norm[i] : splat<T>(0);
                    SLIM_UNROLL
                    for (int k = 0; k < P; ++k) u = with_feature<F, T>(u, splat<T>(point[k]), x[k][i]);
                    if (F != Form::dot) u = u * splat<T>(point[P + 1]);
                    sum[i] += exp2_vector<T>(u) * splat<T>(point[P + 2]);
                }
            }
            T lane[width];
            for (int i = 0; i < kLaneVectors; ++i) store<T>(lane + i * W, sum[i]);
            for (int i = 0; i < width; ++i) total[i] += static_cast<double>(lane[i]);
        }
        const Index n = rows.n - r < width ? rows.n - r : width;
        for (Index i = 0; i < n; ++i) sums[r + i] += total[i];
    }
}

template <int P, class T>
void rows_in_lanes(const Packed<T>& plan, const Rows<T>& rows, double* sums) {
    if (plan.form == Form::dot) return rows_in_lanes<Form::dot, P, T>(plan, rows, sums);
    if (plan.form == Form::square) return rows_in_lanes<Form::square, P, T>(plan, rows, sums);
    return rows_in_lanes<Form::manhattan, P, T>(plan, rows, sums);
}

template <class T>
void rows_in_lanes(const Packed<T>& plan, const Rows<T>& rows, double* sums) {
    switch (plan.p) {
        case 1: return rows_in_lanes<1, T>(plan, rows, sums);
        case 2: return rows_in_lanes<2, T>(plan, rows, sums);
        case 3: return rows_in_lanes<3, T>(plan, rows, sums);
        case 4: return rows_in_lanes<4, T>(plan, rows, sums);
    }
}

// Calls work.run<K>() for the plan's function.
template <class T, class Work>
void with_function(const Packed<T>& plan, const Work& work) {
    switch (plan.function) {
        case Function::exp2: return work.template run<Exp2<T>>();
        case Function::identity: return work.template run<Identity<T>>();
        case Function::power: return work.template run<Power<T>>();
        case Function::real_power: return work.template run<RealPower<T>>();
        case Function::tanh: return work.template run<Tanh<T>>();
    }
}

// Scratch holds u[n][2 W] (or [1][2 kNarrow W]), then the lanes [n][q].
template <class T>
struct Scratch {
    T* u;
    Vec<T>* lanes;
    Scratch(T* scratch, Index n) {
        u = scratch;
        const Index rows = n > kNarrow ? n : kNarrow;
        lanes = reinterpret_cast<Vec<T>*>(scratch + rows * 2 * Simd<T>::W);
    }
};

template <class T>
struct SumRows {
    const Packed<T>& plan;
    const Rows<T>& rows;
    T* scratch;
    double* sums;
    template <class K>
    void run() const {
        Scratch<T> s(scratch, rows.n);
        if (plan.layers) return meet<K, T>(plan, rows, s.u, Distances<K, T>{plan, rows, s.lanes, sums});
        meet<K, T>(plan, rows, s.u, Sums<K, T>{plan, rows.n, s.lanes, sums});
    }
};

template <class T, class Out>
struct ValueRows {
    const Packed<T>& plan;
    const Rows<T>& rows;
    T* scratch;
    Out* values;
    template <class K>
    void run() const {
        meet<K, T>(plan, rows, Scratch<T>(scratch, rows.n).u, Values<K, T, Out>{plan, rows.n, values});
    }
};

// One row whose arguments u[vectors W] are already known.
template <class T>
struct FinishRow {
    const Packed<T>& plan;
    const T* u;
    T* scratch;
    double* out;
    template <class Sink>
    void pass(Sink sink) const {
        for (Index v = 0; v < plan.vectors; ++v) sink.template take<1>(v, Arguments<T>{u + v * Simd<T>::W, 0});
        sink.close();
    }
    template <class K>
    void run() const {
        if (plan.q == 0) return pass(Values<K, T, double>{plan, 1, out});
        Scratch<T> s(scratch, 1);
        pass(Sums<K, T>{plan, 1, s.lanes, out});
    }
};

template <class T>
void sums(const Packed<T>& plan, const Rows<T>& rows, T* scratch, double* out) {
    if (rows.in_lanes) return rows_in_lanes<T>(plan, rows, out);
    with_function<T>(plan, SumRows<T>{plan, rows, scratch, out});
}

template <class T, class Out>
void values(const Packed<T>& plan, const Rows<T>& rows, T* scratch, Out* out) {
    with_function<T>(plan, ValueRows<T, Out>{plan, rows, scratch, out});
}

template <class T>
void finish(const Packed<T>& plan, const T* u, T* scratch, double* out) {
    with_function<T>(plan, FinishRow<T>{plan, u, scratch, out});
}

// A sparse row and V vectors. In Σ|x − z| the zeros of x count too: Σ|z| is in the bias, and each entry adds
// |x − z| − |z|.
template <bool distance, int V, class T>
void sparse_tile(const Packed<T>& plan, Index vector, const SparseRow<T>& row, T* u) {
    constexpr int W = Simd<T>::W;
    constexpr int pair = V == 1 ? 1 : 2;
    const T* z = plan.panels + vector * W * plan.p;
    const Index panel = static_cast<Index>(pair) * W * plan.p;
    Vec<T> c[V];
    SLIM_UNROLL
    for (int v = 0; v < V; ++v) {
        c[v] = load<T>(plan.bias + (vector + v) * W);
        if (!distance) c[v] = c[v] + load<T>(plan.gain + (vector + v) * W) * splat<T>(row.norm);
    }
    for (Index i = 0; i < row.n; ++i) {
        const T* at = z + static_cast<Index>(row.columns[i]) * pair * W;
        const Vec<T> x = splat<T>(row.values[i]);
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) {
            const Vec<T> point = load<T>(at + (v / pair) * panel + (v % pair) * W);
            c[v] = distance ? c[v] + (absolute<T>(x - point) - absolute<T>(point)) : c[v] + point * x;
        }
    }
    SLIM_UNROLL
    for (int v = 0; v < V; ++v) store<T>(u + (vector + v) * W, c[v]);
}

template <bool distance, class T>
void sparse_tiles(const Packed<T>& plan, const SparseRow<T>& row, T* u) {
    constexpr int wide = 2 * kNarrow;
    Index vector = 0;
    for (; vector + wide <= plan.vectors; vector += wide) sparse_tile<distance, wide, T>(plan, vector, row, u);
    for (; vector + 2 <= plan.vectors; vector += 2) sparse_tile<distance, 2, T>(plan, vector, row, u);
    if (vector < plan.vectors) sparse_tile<distance, 1, T>(plan, vector, row, u);
}

template <class T>
void sparse_arguments(const Packed<T>& plan, const SparseRow<T>& row, T* u) {
    if (plan.form == Form::manhattan) return sparse_tiles<true, T>(plan, row, u);
    return sparse_tiles<false, T>(plan, row, u);
}

// ‖x‖² of the R rows of a tile, by eight interleaved partial sums (or one for few features) for any R.
template <int R, class T>
SLIM_INLINE void tile_norms(const T* packed, Index p, T* norms) {
    constexpr int parts = 8;
    if (p < 2 * parts) {
        T sum[R] = {};
        for (Index k = 0; k < p; ++k)
            for (int r = 0; r < R; ++r) sum[r] += packed[k * R + r] * packed[k * R + r];
        for (int r = 0; r < R; ++r) norms[r] = sum[r];
        return;
    }
    T sum[parts][R] = {};
    Index k = 0;
    for (; k + parts <= p; k += parts)
        for (int i = 0; i < parts; ++i)
            for (int r = 0; r < R; ++r) sum[i][r] += packed[(k + i) * R + r] * packed[(k + i) * R + r];
    for (int i = 0; k < p; ++k, ++i)
        for (int r = 0; r < R; ++r) sum[i][r] += packed[k * R + r] * packed[k * R + r];
    for (int half = parts / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i)
            for (int r = 0; r < R; ++r) sum[i][r] += sum[i + half][r];
    for (int r = 0; r < R; ++r) norms[r] = sum[0][r];
}

// Copies rows [R][p] minus the centre to a tile [p][R].
template <int R, class T>
void pack_tile(const T* rows, const T* centre, Index p, T* packed, T* norms) {
    constexpr int W = Simd<T>::W;
    Index k = 0;
    for (; k + W <= p; k += W) {
        const Vec<T> middle = load<T>(centre + k);
        for (int r = 0; r < R; ++r) {
            T lane[W];
            store<T>(lane, load<T>(rows + r * p + k) - middle);
            T* to = packed + k * R + r;
            SLIM_UNROLL
            for (int i = 0; i < W; ++i) to[i * R] = lane[i];
        }
    }
    for (; k < p; ++k)
        for (int r = 0; r < R; ++r) packed[k * R + r] = rows[r * p + k] - centre[k];
    tile_norms<R, T>(packed, p, norms);
}

// Copies rows [n][p] minus the centre to [p][n], padded with zeros to whole groups of lanes.
template <class T>
void pack_lanes(const Packed<T>& plan, const T* rows, Index n, T* packed, T* norms) {
    constexpr Index width = kLaneVectors * Simd<T>::W;
    const Index stride = (n + width - 1) / width * width;
    for (Index r = 0; r < stride; ++r) norms[r] = 0;
    for (Index k = 0; k < plan.p; ++k) {
        T* to = packed + k * stride;
        for (Index r = 0; r < n; ++r) to[r] = rows[r * plan.p + k] - plan.centre[k];
        for (Index r = n; r < stride; ++r) to[r] = 0;
        for (Index r = 0; r < stride; ++r) norms[r] += to[r] * to[r];
    }
}

template <class T>
void pack(const Packed<T>& plan, const T* rows, Index n, bool in_lanes, T* packed, T* norms) {
    if (in_lanes) return pack_lanes<T>(plan, rows, n, packed, norms);
    const Index p = plan.p;
    const T* centre = plan.centre;
    Index r = 0;
    for (; r + kTileRows <= n; r += kTileRows)
        pack_tile<kTileRows, T>(rows + r * p, centre, p, packed + r * p, norms + r);
    for (; r + 4 <= n; r += 4) pack_tile<4, T>(rows + r * p, centre, p, packed + r * p, norms + r);
    for (; r < n; ++r) pack_tile<1, T>(rows + r * p, centre, p, packed + r * p, norms + r);
}

template <class T>
void exp2_array(T* array, Index n) {
    constexpr int W = Simd<T>::W;
    for (Index i = 0; i + 4 * W <= n; i += 4 * W) {
        SLIM_UNROLL
        for (int v = 0; v < 4; ++v) store<T>(array + i + v * W, exp2_vector<T>(load<T>(array + i + v * W)));
    }
}

#include "stages.h"

template <class T>
constexpr slim::Kernels<T> kernels() {
    return {Simd<T>::W, kTileRows, kLaneVectors * Simd<T>::W, &sums<T>, &values<T, T>, &values<T, double>,
            &sparse_arguments<T>, &finish<T>, &pack<T>, &exp2_array<T>, &keep<T>, &stage_sums<T>, &keep_in_lanes<T>,
            &judge<T>, &move_up<T>};
}

}  // namespace
