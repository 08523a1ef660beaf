// Early exit in one instruction set: kernel values are kept, so that every stage takes its own sums of them.
//
// In tiles a row's values lie together, kept[row][slots], and a stage sums over lanes. With rows in lanes (few features)
// they lie point by point, kept[point][rows], and nothing is summed over lanes. Included by kernels.h alone.
#pragma once

// Takes the kernel values of row r to kept[place[r]][slot].
template <class K, class T>
struct Keep {
    const Packed<T>& plan;
    Index n;
    const std::int32_t* place;
    T* kept;
    Index stride;

    template <int V>
    void take(Index vector, Arguments<T> source) {
        constexpr int W = Simd<T>::W;
        const K kernel(plan.degree);
        const bool scaled = plan.form != Form::dot;
        Vec<T> gain[V];
        for (int v = 0; v < V; ++v) gain[v] = load<T>(plan.gain + (vector + v) * W);
        for (Index r = 0; r < n; ++r) {
            T* to = kept + place[r] * stride + vector * W;
            SLIM_UNROLL
            for (int v = 0; v < V; ++v) {
                const Vec<T> u = source(r, v);
                store<T>(to + v * W, kernel(scaled ? u * gain[v] : u));
            }
        }
    }

    void close() {}
};

template <class T>
struct KeepRows {
    const Packed<T>& plan;
    const Rows<T>& rows;
    T* scratch;
    const std::int32_t* place;
    T* kept;
    Index stride;
    template <class K>
    void run() const {
        meet<K, T>(plan, rows, Scratch<T>(scratch, rows.n).u, Keep<K, T>{plan, rows.n, place, kept, stride});
    }
};

template <class T>
void keep(const Packed<T>& plan, const Rows<T>& rows, T* scratch, const std::int32_t* place, T* kept, Index stride) {
    with_function<T>(plan, KeepRows<T>{plan, rows, scratch, place, kept, stride});
}

// One output's sum over the vectors of a row; two chains, as one would wait for itself.
template <class T>
SLIM_INLINE double weighted_sum(const T* values, const T* coef, Index vectors) {
    constexpr int W = Simd<T>::W;
    Vec<T> even = splat<T>(0), odd = splat<T>(0);
    Index v = 0;
    for (; v + 2 <= vectors; v += 2) {
        even += load<T>(values + v * W) * load<T>(coef + v * W);
        odd += load<T>(values + (v + 1) * W) * load<T>(coef + (v + 1) * W);
    }
    if (v < vectors) even += load<T>(values + v * W) * load<T>(coef + v * W);
    return static_cast<double>(lane_sum<T>(even + odd));
}

// out[i][q] of the rows in place[n], with coef [q][vectors W].
template <class T>
void stage_sums(const T* kept, Index stride, const std::int32_t* place, Index n, const T* coef, Index vectors, Index q,
                double* out) {
    constexpr int W = Simd<T>::W;
    for (Index i = 0; i < n; ++i)
        for (Index o = 0; o < q; ++o)
            out[i * q + o] = weighted_sum<T>(kept + place[i] * stride, coef + o * vectors * W, vectors);
}

// Points [begin, end) against n rows in lanes, packed[p][stride]; only with exponentials.
template <Form F, int P, class T>
void keep_points(const Packed<T>& plan, const T* packed, const T* norms, Index n, Index stride, Index begin, Index end,
                 T* kept) {
    constexpr int W = Simd<T>::W;
    constexpr int width = kLaneVectors * W;
    for (Index r = 0; r < n; r += width) {
        Vec<T> x[P][kLaneVectors], norm[kLaneVectors];
        for (int i = 0; i < kLaneVectors; ++i) {
            norm[i] = load<T>(norms + r + i * W);
            for (int k = 0; k < P; ++k) x[k][i] = load<T>(packed + k * stride + r + i * W);
        }
        const T* point = plan.few + begin * (P + 3);
        for (Index j = begin; j < end; ++j, point += P + 3) {
            SLIM_UNROLL
            for (int i = 0; i < kLaneVectors; ++i) {
                Vec<T> u = F == Form::dot ? splat<T>(point[P]) + splat<T>(point[P + 1]) * norm[i] : splat<T>(0);
                SLIM_UNROLL
                for (int k = 0; k < P; ++k) u = with_feature<F, T>(u, splat<T>(point[k]), x[k][i]);
                if (F != Form::dot) u = u * splat<T>(point[P + 1]);
                store<T>(kept + j * stride + r + i * W, exp2_vector<T>(u));
            }
        }
    }
}

template <int P, class T>
void keep_points(const Packed<T>& plan, const T* packed, const T* norms, Index n, Index stride, Index begin, Index end,
                 T* kept) {
    if (plan.form == Form::dot) return keep_points<Form::dot, P, T>(plan, packed, norms, n, stride, begin, end, kept);
    if (plan.form == Form::square)
        return keep_points<Form::square, P, T>(plan, packed, norms, n, stride, begin, end, kept);
    return keep_points<Form::manhattan, P, T>(plan, packed, norms, n, stride, begin, end, kept);
}

template <class T>
void keep_in_lanes(const Packed<T>& plan, const T* packed, const T* norms, Index n, Index stride, Index begin,
                   Index end, T* kept) {
    switch (plan.p) {
        case 1: return keep_points<1, T>(plan, packed, norms, n, stride, begin, end, kept);
        case 2: return keep_points<2, T>(plan, packed, norms, n, stride, begin, end, kept);
        case 3: return keep_points<3, T>(plan, packed, norms, n, stride, begin, end, kept);
        case 4: return keep_points<4, T>(plan, packed, norms, n, stride, begin, end, kept);
    }
}

// out[n] = Σ_j coef[j] kept[j][row] over m points.
template <class T>
void lane_sums(const T* kept, Index stride, Index n, const T* coef, Index m, double* out) {
    constexpr int W = Simd<T>::W;
    constexpr int width = kLaneVectors * W;
    for (Index r = 0; r < n; r += width) {
        Vec<T> sum[kLaneVectors];
        for (int i = 0; i < kLaneVectors; ++i) sum[i] = splat<T>(0);
        for (Index j = 0; j < m; ++j) {
            const Vec<T> c = splat<T>(coef[j]);
            SLIM_UNROLL
            for (int i = 0; i < kLaneVectors; ++i) sum[i] += c * load<T>(kept + j * stride + r + i * W);
        }
        T lane[width];
        for (int i = 0; i < kLaneVectors; ++i) store<T>(lane + i * W, sum[i]);
        const Index some = n - r < width ? n - r : width;
        for (Index i = 0; i < some; ++i) out[r + i] = static_cast<double>(lane[i]);
    }
}
