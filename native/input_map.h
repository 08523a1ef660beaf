// The affine map that is applied to the data before the kernel.
#pragma once

#include <algorithm>
#include <vector>

#include "machine.h"

namespace slim {

// x → A (x − a) + c, or the identity.
class Map {
public:
    explicit Map(const Description& machine) : d_(machine.d), p_(machine.p), diagonal_(machine.diagonal) {
        if (!machine.shift) return;
        shift_.assign(machine.shift, machine.shift + d_);
        offset_.assign(machine.offset, machine.offset + p_);
        scale_.assign(machine.scale, machine.scale + (diagonal_ ? d_ : d_ * p_));
        if (diagonal_) return;
        for (Index i = 0; i < p_; ++i)  // feature by feature, so that the inner loop runs over outputs
            for (Index k = 0; k < d_; ++k) scale_[k * p_ + i] = machine.scale[i * d_ + k];
    }
    bool is_there() const { return !shift_.empty(); }
    Index width_in() const { return d_; }

    // Always in double, because a shift may cancel most digits of x.
    template <class X, class T>
    void apply(const X* x, T* y, double* sum) const {
        if (diagonal_) {
            for (Index k = 0; k < d_; ++k)
                y[k] = static_cast<T>((static_cast<double>(x[k]) - shift_[k]) * scale_[k] + offset_[k]);
            return;
        }
        std::copy(offset_.begin(), offset_.end(), sum);
        for (Index k = 0; k < d_; ++k) {
            const double centred = static_cast<double>(x[k]) - shift_[k];
            const double* column = scale_.data() + k * p_;
            for (Index i = 0; i < p_; ++i) sum[i] += column[i] * centred;
        }
        for (Index i = 0; i < p_; ++i) y[i] = static_cast<T>(sum[i]);
    }

private:
    Index d_, p_;
    bool diagonal_;
    std::vector<double> shift_, scale_, offset_;
};

}  // namespace slim
