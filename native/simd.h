// Vectors of the instruction set that this translation unit is compiled for.
//
// Included only by native/isa/*.cpp, each of which is built with its own flags. Everything here has internal linkage,
// because the linker could otherwise use an inline function of the wrong instruction set.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) || defined(_M_X64)
#define SLIM_X86 1
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define SLIM_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SLIM_VECTOR_BYTES 32
#else
#define SLIM_VECTOR_BYTES 16
#endif

#if defined(__GNUC__) || defined(__clang__)
#if defined(__clang__)
#define SLIM_UNROLL _Pragma("unroll")
#else
#define SLIM_UNROLL _Pragma("GCC unroll 16")
#endif
#define SLIM_INLINE inline __attribute__((always_inline))
#else
#define SLIM_UNROLL
#define SLIM_INLINE __forceinline
#endif

namespace {

template <class T>
struct Simd;

#if defined(__GNUC__) || defined(__clang__)

typedef float FloatVector __attribute__((vector_size(SLIM_VECTOR_BYTES)));
typedef double DoubleVector __attribute__((vector_size(SLIM_VECTOR_BYTES)));
typedef std::int32_t Int32Vector __attribute__((vector_size(SLIM_VECTOR_BYTES)));
typedef std::int64_t Int64Vector __attribute__((vector_size(SLIM_VECTOR_BYTES)));

#else  // compilers without vector types: plain arrays, which they vectorise themselves

template <class T>
struct Lanes {
    static constexpr int n = SLIM_VECTOR_BYTES / sizeof(T);
    T lane[n];
    T& operator[](int i) { return lane[i]; }
};
#define SLIM_LANEWISE(op)                                    \
    template <class T>                                       \
    inline Lanes<T> operator op(Lanes<T> a, Lanes<T> b) {    \
        for (int i = 0; i < Lanes<T>::n; ++i) a.lane[i] = a.lane[i] op b.lane[i]; \
        return a;                                            \
    }
SLIM_LANEWISE(+)
SLIM_LANEWISE(-)
SLIM_LANEWISE(*)
SLIM_LANEWISE(/)
#undef SLIM_LANEWISE
template <class T>
inline Lanes<T>& operator+=(Lanes<T>& a, Lanes<T> b) { return a = a + b; }
template <class T>
inline Lanes<T> operator<<(Lanes<T> a, int bits) {
    for (int i = 0; i < Lanes<T>::n; ++i) a.lane[i] = static_cast<T>(static_cast<std::uint64_t>(a.lane[i]) << bits);
    return a;
}
using FloatVector = Lanes<float>;
using DoubleVector = Lanes<double>;
using Int32Vector = Lanes<std::int32_t>;
using Int64Vector = Lanes<std::int64_t>;

#endif

template <>
struct Simd<float> {
    using Vector = FloatVector;
    using Integer = Int32Vector;
    using IntegerLane = std::int32_t;
    static constexpr int W = SLIM_VECTOR_BYTES / 4;
};

template <>
struct Simd<double> {
    using Vector = DoubleVector;
    using Integer = Int64Vector;
    using IntegerLane = std::int64_t;
    static constexpr int W = SLIM_VECTOR_BYTES / 8;
};

template <class T>
using Vec = typename Simd<T>::Vector;

template <class T>
inline Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
inline void store(T* p, Vec<T> v) {
    std::memcpy(p, &v, sizeof v);
}

// Prefetches the cache line of p, which need not be a valid address.
inline void prefetch(const void* p) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

template <class T>
inline Vec<T> splat(T value) {
#if defined(__GNUC__) || defined(__clang__)
    return value - Vec<T>{};  // value − 0 is value, also for −0, so that the compiler sees a plain broadcast
#else
    Vec<T> v;
    for (int i = 0; i < Simd<T>::W; ++i) v.lane[i] = value;
    return v;
#endif
}

template <class To, class From>
inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "bits() keeps the size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// max(a, b) lane by lane, as one instruction, which compilers do not use by themselves because of NaN.
#if defined(__AVX512F__)
inline FloatVector larger(FloatVector a, FloatVector b) {
    return bits<FloatVector>(_mm512_max_ps(bits<__m512>(a), bits<__m512>(b)));
}
inline DoubleVector larger(DoubleVector a, DoubleVector b) {
    return bits<DoubleVector>(_mm512_max_pd(bits<__m512d>(a), bits<__m512d>(b)));
}
#elif defined(__AVX2__)
inline FloatVector larger(FloatVector a, FloatVector b) {
    return bits<FloatVector>(_mm256_max_ps(bits<__m256>(a), bits<__m256>(b)));
}
inline DoubleVector larger(DoubleVector a, DoubleVector b) {
    return bits<DoubleVector>(_mm256_max_pd(bits<__m256d>(a), bits<__m256d>(b)));
}
#elif defined(SLIM_X86)
inline FloatVector larger(FloatVector a, FloatVector b) {
    return bits<FloatVector>(_mm_max_ps(bits<__m128>(a), bits<__m128>(b)));
}
inline DoubleVector larger(DoubleVector a, DoubleVector b) {
    return bits<DoubleVector>(_mm_max_pd(bits<__m128d>(a), bits<__m128d>(b)));
}
#elif defined(__aarch64__)
inline FloatVector larger(FloatVector a, FloatVector b) {
    return bits<FloatVector>(vmaxq_f32(bits<float32x4_t>(a), bits<float32x4_t>(b)));
}
inline DoubleVector larger(DoubleVector a, DoubleVector b) {
    return bits<DoubleVector>(vmaxq_f64(bits<float64x2_t>(a), bits<float64x2_t>(b)));
}
#else
template <class V>
inline V larger(V a, V b) {
    for (unsigned i = 0; i < sizeof(V) / sizeof(a[0]); ++i) a[i] = a[i] > b[i] ? a[i] : b[i];
    return a;
}
#endif

// √a lane by lane.
#if defined(__AVX512F__)
inline FloatVector square_root(FloatVector a) { return bits<FloatVector>(_mm512_sqrt_ps(bits<__m512>(a))); }
inline DoubleVector square_root(DoubleVector a) { return bits<DoubleVector>(_mm512_sqrt_pd(bits<__m512d>(a))); }
#elif defined(__AVX2__)
inline FloatVector square_root(FloatVector a) { return bits<FloatVector>(_mm256_sqrt_ps(bits<__m256>(a))); }
inline DoubleVector square_root(DoubleVector a) { return bits<DoubleVector>(_mm256_sqrt_pd(bits<__m256d>(a))); }
#elif defined(SLIM_X86)
inline FloatVector square_root(FloatVector a) { return bits<FloatVector>(_mm_sqrt_ps(bits<__m128>(a))); }
inline DoubleVector square_root(DoubleVector a) { return bits<DoubleVector>(_mm_sqrt_pd(bits<__m128d>(a))); }
#elif defined(__aarch64__)
inline FloatVector square_root(FloatVector a) { return bits<FloatVector>(vsqrtq_f32(bits<float32x4_t>(a))); }
inline DoubleVector square_root(DoubleVector a) { return bits<DoubleVector>(vsqrtq_f64(bits<float64x2_t>(a))); }
#else
template <class V>
inline V square_root(V a) {
    for (unsigned i = 0; i < sizeof(V) / sizeof(a[0]); ++i) a[i] = std::sqrt(a[i]);
    return a;
}
#endif

// count + 1 in the lanes where a > 0.
inline Int32Vector count_positive(Int32Vector count, FloatVector a) {
#if defined(__AVX512F__)
    const __mmask16 above = _mm512_cmp_ps_mask(bits<__m512>(a), _mm512_setzero_ps(), _CMP_GT_OQ);
    const __m512i old = bits<__m512i>(count);
    return bits<Int32Vector>(_mm512_mask_sub_epi32(old, above, old, _mm512_set1_epi32(-1)));
#elif defined(__GNUC__) || defined(__clang__)
    return count - (a > FloatVector{});  // a true comparison is −1
#else
    for (int i = 0; i < Simd<float>::W; ++i) count[i] += a[i] > 0 ? 1 : 0;
    return count;
#endif
}

// sum + weight in the lanes where a > 0.
inline FloatVector add_where_positive(FloatVector sum, FloatVector a, FloatVector weight) {
#if defined(__AVX512F__)
    const __mmask16 above = _mm512_cmp_ps_mask(bits<__m512>(a), _mm512_setzero_ps(), _CMP_GT_OQ);
    return bits<FloatVector>(_mm512_mask_add_ps(bits<__m512>(sum), above, bits<__m512>(sum), bits<__m512>(weight)));
#elif defined(__GNUC__) || defined(__clang__)
    return sum + bits<FloatVector>(bits<Int32Vector>(weight) & (a > FloatVector{}));
#else
    for (int i = 0; i < Simd<float>::W; ++i) sum[i] += a[i] > 0 ? weight[i] : 0;
    return sum;
#endif
}

template <class T>
inline Vec<T> absolute(Vec<T> a) {
    return larger(a, splat<T>(0) - a);
}

// The sum of the lanes, in a fixed order: one half is added to the other, repeatedly.
template <class T>
inline T lane_sum(Vec<T> v) {
    T lane[Simd<T>::W];
    std::memcpy(lane, &v, sizeof v);
    for (int half = Simd<T>::W / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
    return lane[0];
}

#if defined(__AVX512F__)
template <>
inline float lane_sum<float>(FloatVector v) {
    const __m512 all = bits<__m512>(v);
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

template <>
inline double lane_sum<double>(DoubleVector v) {
    const __m512d all = bits<__m512d>(v);
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(all), _mm512_extractf64x4_pd(all, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}
#endif

}  // namespace
