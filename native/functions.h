// Kernel functions of a vector u. Included only by native/isa/*.cpp (see simd.h).
#pragma once

#include <cmath>

#include "simd.h"

namespace {

// 2^u = 2^k · P(u − k), k the nearest integer; P is the minimax polynomial of relative error 1.9e-9 (float, degree 6)
// or 3.1e-18 (double, degree 11) on [−1/2, 1/2]. Arguments are raised to at least `least`, one below the smallest normal
// exponent. P is exactly 1 there and its exponent becomes zero, so that every underflow gives exactly 0.
template <class T>
struct Exp2Table;

template <>
struct Exp2Table<float> {
    static constexpr int degree = 6, mantissa = 23;
    static constexpr float least = -127.0f, round = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer
    static constexpr float polynomial[degree + 1] = {1.5345812e-4f,   1.339993122e-3f, 9.618488957e-3f, 5.550328777e-2f,
                                                     2.402264689e-1f, 6.931472057e-1f, 1.0f};
};

template <>
struct Exp2Table<double> {
    static constexpr int degree = 11, mantissa = 52;
    static constexpr double least = -1023.0, round = 6755399441055744.0;  // 1.5 · 2^52
    static constexpr double polynomial[degree + 1] = {
        4.4352807902446588162e-10, 7.0741056308451356638e-9, 1.0178198034322162877e-7, 1.3215433089567294278e-6,
        1.525273348995851515e-5,   1.5403530462514668279e-4, 1.3333558146789952575e-3, 9.6181291075883350393e-3,
        5.5504108664819921475e-2,  2.4022650695910156205e-1, 6.9314718055994533046e-1, 1.0};
};
constexpr float Exp2Table<float>::polynomial[];
constexpr double Exp2Table<double>::polynomial[];

// Splits u = k + r, and computes Q with P(r) = 1 + r Q(r).
template <class T>
struct Exp2Parts {
    using Table = Exp2Table<T>;
    Vec<T> shifted, r, q;

    explicit SLIM_INLINE Exp2Parts(Vec<T> u) {
        u = larger(u, splat<T>(Table::least));
        shifted = u + splat<T>(Table::round);
        r = u - (shifted - splat<T>(Table::round));
        q = splat<T>(Table::polynomial[0]);
        SLIM_UNROLL
        for (int i = 1; i < Table::degree; ++i) q = q * r + splat<T>(Table::polynomial[i]);
    }

    // 2^k · value, for values whose exponent does not overflow.
    SLIM_INLINE Vec<T> times_power(Vec<T> value) const {
        using Integer = typename Simd<T>::Integer;
        return bits<Vec<T>>(bits<Integer>(value) + (bits<Integer>(shifted) << Table::mantissa));
    }
};

template <class T>
inline Vec<T> exp2_vector(Vec<T> u) {
    const Exp2Parts<T> parts(u);
    return parts.times_power(parts.q * parts.r + splat<T>(1));
}

// 2^u − 1, accurate also if u is near 0: 2^k r Q(r) + (2^k − 1).
template <class T>
inline Vec<T> exp2_less_one(Vec<T> u) {
    const Exp2Parts<T> parts(u);
    const Vec<T> power = parts.times_power(splat<T>(1));
    return power * (parts.q * parts.r) + (power - splat<T>(1));
}

template <class T>
struct Exp2 {
    explicit Exp2(double) {}
    Vec<T> operator()(Vec<T> u) const { return exp2_vector<T>(u); }
};

template <class T>
struct Identity {
    explicit Identity(double) {}
    Vec<T> operator()(Vec<T> u) const { return u; }
};

// u^n for a whole n by repeated squaring.
template <class T>
struct Power {
    unsigned n;
    explicit Power(double degree) : n(static_cast<unsigned>(degree)) {}
    Vec<T> operator()(Vec<T> u) const {
        Vec<T> result = splat<T>(1);
        for (unsigned k = n; k; k >>= 1, u = u * u)
            if (k & 1) result = result * u;
        return result;
    }
};

template <class T>
struct RealPower {
    T degree;
    explicit RealPower(double degree) : degree(static_cast<T>(degree)) {}
    Vec<T> operator()(Vec<T> u) const {
        T lane[Simd<T>::W];
        store<T>(lane, u);
        for (T& value : lane) value = std::pow(value, degree);
        return load<T>(lane);
    }
};

// tanh(t) with u = 2 log2(e) t: 1 − 2/(2^u + 1). Its absolute error is small, which is enough for a sum of values.
template <class T>
struct Tanh {
    explicit Tanh(double) {}
    Vec<T> operator()(Vec<T> u) const {
        u = splat<T>(0) - larger(splat<T>(0) - u, splat<T>(-64));  // above it tanh is 1; 2^u must not overflow
        return splat<T>(1) - splat<T>(2) / (exp2_vector<T>(u) + splat<T>(1));
    }
};

}  // namespace
