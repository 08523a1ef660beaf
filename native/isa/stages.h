// Early exit in one instruction set: kernel values are kept, and every stage computes its own sums of them.
//
// For a single row, points are in lanes, kept[slot], and a stage sums over lanes. For many rows, the rows are in lanes:
// values are stored point by point, kept[point][rows], stages may end at any point, and there are no sums over lanes.
// Included by kernels.h.
#pragma once

// Writes the kernel values of one row to kept[slot].
template <class K, class T>
struct Keep {
    const Packed<T>& plan;
    T* kept;

    template <int V>
    void take(Index vector, Arguments<T> source) {
        constexpr int W = Simd<T>::W;
        const K kernel(plan.degree);
        const bool scaled = plan.form != Form::dot;
        SLIM_UNROLL
        for (int v = 0; v < V; ++v) {
            const Vec<T> u = source(0, v);
            store<T>(kept + (vector + v) * W, kernel(scaled ? u * load<T>(plan.gain + (vector + v) * W) : u));
        }
    }

    void close() {}
};

template <class T>
struct KeepRow {
    const Packed<T>& plan;
    const Rows<T>& row;
    T *scratch, *kept;
    template <class K>
    void run() const {
        meet<K, T>(plan, row, Scratch<T>(scratch, 1).u, Keep<K, T>{plan, kept});
    }
};

template <class T>
void keep(const Packed<T>& plan, const Rows<T>& row, T* scratch, T* kept) {
    with_function<T>(plan, KeepRow<T>{plan, row, scratch, kept});
}

// The sum of one output over the vectors of a row, in two chains, because each addition waits for the last one.
template <class T>
SLIM_INLINE T weighted_sum(const T* values, const T* coef, Index vectors) {
    constexpr int W = Simd<T>::W;
    Vec<T> even = splat<T>(0), odd = splat<T>(0);
    Index v = 0;
    for (; v + 2 <= vectors; v += 2) {
        even += load<T>(values + v * W) * load<T>(coef + v * W);
        odd += load<T>(values + (v + 1) * W) * load<T>(coef + (v + 1) * W);
    }
    if (v < vectors) even += load<T>(values + v * W) * load<T>(coef + v * W);
    return lane_sum<T>(even + odd);
}

// out[q] of one row, with coef [q][vectors W].
template <class T>
void stage_sums(const T* kept, const T* coef, Index vectors, Index q, T* out) {
    for (Index o = 0; o < q; ++o) out[o] = weighted_sum<T>(kept, coef + o * vectors * Simd<T>::W, vectors);
}

// J points from j on, with kLaneVectors vectors of rows in lanes, packed[p][stride], from row r on.
template <Form F, int J, class K, class T>
SLIM_INLINE void lane_tile(const Packed<T>& plan, const T* packed, const T* norms, Index stride, Index r, Index j,
                           const K& kernel, T* kept) {
    constexpr int W = Simd<T>::W;
    const Index step = plan.p + 3;
    const T* point = plan.few + j * step;
    Vec<T> u[J][kLaneVectors];
    SLIM_UNROLL
    for (int a = 0; a < J; ++a) {
        const Vec<T> bias = splat<T>(point[a * step + plan.p]), gain = splat<T>(point[a * step + plan.p + 1]);
        SLIM_UNROLL
        for (int i = 0; i < kLaneVectors; ++i)
            u[a][i] = F == Form::dot ? bias + gain * load<T>(norms + r + i * W) : splat<T>(0);
    }
    for (Index k = 0; k < plan.p; ++k) {
        Vec<T> x[kLaneVectors];
        SLIM_UNROLL
        for (int i = 0; i < kLaneVectors; ++i) x[i] = load<T>(packed + k * stride + r + i * W);
        SLIM_UNROLL
        for (int a = 0; a < J; ++a) {
            const Vec<T> z = splat<T>(point[a * step + k]);
            SLIM_UNROLL
            for (int i = 0; i < kLaneVectors; ++i) u[a][i] = with_feature<F, T>(u[a][i], z, x[i]);
        }
    }
    SLIM_UNROLL
    for (int a = 0; a < J; ++a) {
        const Vec<T> gain = splat<T>(point[a * step + plan.p + 1]);
        SLIM_UNROLL
        for (int i = 0; i < kLaneVectors; ++i)
            store<T>(kept + (j + a) * stride + r + i * W, kernel(F == Form::dot ? u[a][i] : u[a][i] * gain));
    }
}

// Writes the kernel values of points [begin, end) and n rows in lanes to kept[point][rows].
template <Form F, class K, class T>
void keep_points(const Packed<T>& plan, const T* packed, const T* norms, Index n, Index stride, Index begin, Index end,
                 T* kept) {
    const K kernel(plan.degree);
    for (Index r = 0; r < n; r += kLaneVectors * Simd<T>::W) {
        Index j = begin;
        for (; j + 4 <= end; j += 4) lane_tile<F, 4, K, T>(plan, packed, norms, stride, r, j, kernel, kept);
        for (; j < end; ++j) lane_tile<F, 1, K, T>(plan, packed, norms, stride, r, j, kernel, kept);
    }
}

template <class T>
struct KeepPoints {
    const Packed<T>& plan;
    const T *packed, *norms;
    Index n, stride, begin, end;
    T* kept;
    template <class K>
    void run() const {
        if (plan.form == Form::dot) keep_points<Form::dot, K, T>(plan, packed, norms, n, stride, begin, end, kept);
        if constexpr (is_exp2<K>) {
            if (plan.form == Form::square)
                keep_points<Form::square, K, T>(plan, packed, norms, n, stride, begin, end, kept);
            if (plan.form == Form::manhattan)
                keep_points<Form::manhattan, K, T>(plan, packed, norms, n, stride, begin, end, kept);
        }
    }
};

template <class T>
void keep_in_lanes(const Packed<T>& plan, const T* packed, const T* norms, Index n, Index stride, Index begin,
                   Index end, T* kept) {
    with_function<T>(plan, KeepPoints<T>{plan, packed, norms, n, stride, begin, end, kept});
}

// A bit for every lane that is above `upper`, below `lower`, or NaN.
#if defined(__AVX512F__)
inline std::uint64_t crossed(DoubleVector v, double upper, double lower) {
    const __m512d all = bits<__m512d>(v);
    return _mm512_cmp_pd_mask(all, _mm512_set1_pd(upper), _CMP_NLE_UQ) |
           _mm512_cmp_pd_mask(all, _mm512_set1_pd(lower), _CMP_NGE_UQ);
}
inline std::uint64_t crossed(FloatVector v, float upper, float lower) {
    const __m512 all = bits<__m512>(v);
    return _mm512_cmp_ps_mask(all, _mm512_set1_ps(upper), _CMP_NLE_UQ) |
           _mm512_cmp_ps_mask(all, _mm512_set1_ps(lower), _CMP_NGE_UQ);
}
#elif defined(__AVX2__)
inline std::uint64_t crossed(DoubleVector v, double upper, double lower) {
    const __m256d all = bits<__m256d>(v);
    return static_cast<std::uint64_t>(_mm256_movemask_pd(_mm256_cmp_pd(all, _mm256_set1_pd(upper), _CMP_NLE_UQ)) |
                                      _mm256_movemask_pd(_mm256_cmp_pd(all, _mm256_set1_pd(lower), _CMP_NGE_UQ)));
}
inline std::uint64_t crossed(FloatVector v, float upper, float lower) {
    const __m256 all = bits<__m256>(v);
    return static_cast<std::uint64_t>(_mm256_movemask_ps(_mm256_cmp_ps(all, _mm256_set1_ps(upper), _CMP_NLE_UQ)) |
                                      _mm256_movemask_ps(_mm256_cmp_ps(all, _mm256_set1_ps(lower), _CMP_NGE_UQ)));
}
#else
template <class V, class T>
inline std::uint64_t crossed(V v, T upper, T lower) {
    std::uint64_t mask = 0;
    for (int i = 0; i < Simd<T>::W; ++i)
        mask |= static_cast<std::uint64_t>(!(v[i] <= upper) | !(v[i] >= lower)) << i;
    return mask;
}
#endif

template <class T>
SLIM_INLINE Vec<T> smaller(Vec<T> a, Vec<T> b) {
    return splat<T>(0) - larger(splat<T>(0) - a, splat<T>(0) - b);
}

// A stage for rows in lanes: writes scores[q][stride], and a bit in sure[] for each lane that it decides, 64 per word.
// Coefficients are [q][step], m of them. With several outputs, `upper` is the lead.
template <class T>
void judge(const T* kept, Index stride, Index n, const T* coef, Index step, Index m, const T* intercept, Index q,
           T upper, T lower, T* scores, std::uint64_t* sure) {
    constexpr int W = Simd<T>::W;
    for (Index i = 0; 64 * i < n; ++i) sure[i] = 0;
    for (Index r = 0; r < n; r += kLaneVectors * W) {
        Vec<T> best[kLaneVectors], second[kLaneVectors];
        for (Index o = 0; o < q; ++o) {
            Vec<T> sum[kLaneVectors];
            for (int i = 0; i < kLaneVectors; ++i) sum[i] = splat<T>(0);
            for (Index j = 0; j < m; ++j) {
                const Vec<T> c = splat<T>(coef[o * step + j]);
                SLIM_UNROLL
                for (int i = 0; i < kLaneVectors; ++i) sum[i] += c * load<T>(kept + j * stride + r + i * W);
            }
            for (int i = 0; i < kLaneVectors; ++i) {
                const Vec<T> score = sum[i] + splat<T>(intercept[o]);
                store<T>(scores + o * stride + r + i * W, score);
                second[i] = o == 0 ? score : o == 1 ? smaller<T>(best[i], score)
                                                    : larger(second[i], smaller<T>(best[i], score));
                best[i] = o == 0 ? score : larger(best[i], score);
            }
        }
        for (int i = 0; i < kLaneVectors; ++i) {
            const std::uint64_t lanes =
                q == 1 ? crossed(best[i], upper, lower) : crossed(best[i] - second[i], upper, T(0));
            sure[(r + i * W) / 64] |= lanes << (r + i * W) % 64;
        }
    }
}

// Moves the first n lanes that have a bit in alive[] to the front, in each of `count` arrays.
template <class T>
void move_up(T* arrays, Index count, Index stride, const std::uint64_t* alive, Index n) {
    constexpr int W = Simd<T>::W;
    for (Index j = 0; j < count; ++j) {
        T* array = arrays + j * stride;
        T* to = array;
        for (Index r = 0; r < n; r += W) {
            const std::uint64_t mask = alive[r / 64] >> r % 64;
#if defined(__AVX512F__)
            if constexpr (sizeof(T) == 8) {
                const __m512d all = bits<__m512d>(load<T>(array + r));
                store<T>(to, bits<Vec<T>>(_mm512_maskz_compress_pd(static_cast<__mmask8>(mask), all)));
                to += __builtin_popcount(static_cast<std::uint8_t>(mask));
            } else {
                const __m512 all = bits<__m512>(load<T>(array + r));
                store<T>(to, bits<Vec<T>>(_mm512_maskz_compress_ps(static_cast<__mmask16>(mask), all)));
                to += __builtin_popcount(static_cast<std::uint16_t>(mask));
            }
#else
            for (int i = 0; i < W; ++i) {
                *to = array[r + i];
                to += mask >> i & 1;
            }
#endif
        }
    }
}
