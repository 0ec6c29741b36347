// Adam on a regularised gradient that is clipped element by element.
//
// Square root and division are the processor's own, exactly rounded: an approximate reciprocal
// would be no faster here and would give other bits on other makers' processors.
#pragma once

#include "simd.hpp"

namespace mvenet::MVENET_ISA {

class StepSize {
public:
    StepSize(double learning_rate, bool cosine, std::int64_t steps)
        : rate_(learning_rate), cosine_(cosine), steps_(steps) {}

    // learning rate of the next step, times the correction for moments that started at zero
    double next() {
        constexpr double pi = 3.14159265358979323846;
        const double rate =
            cosine_ ? rate_ * 0.5 * (1 + __builtin_cos(pi * double(step_) / double(steps_)))
                    : rate_;
        ++step_;
        power1_ *= beta1;
        power2_ *= beta2;
        return rate * __builtin_sqrt(1 - power2_) / (1 - power1_);
    }

    static constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;

private:
    double rate_;
    bool cosine_;
    std::int64_t steps_;
    std::int64_t step_ = 0;
    double power1_ = 1, power2_ = 1;
};

// n parameters with one penalty: the gradient of penalty * w^2 is 2 * penalty * w.
template <class T>
MVENET_INLINE void adam(T* w, const T* gradient, T* moment1, T* moment2, std::ptrdiff_t n,
                        T penalty, T clip, T step) {
    constexpr T b1 = T(StepSize::beta1), c1 = T(1 - StepSize::beta1);
    constexpr T b2 = T(StepSize::beta2), c2 = T(1 - StepSize::beta2);
    for (std::ptrdiff_t i = 0; i < n; i += lanes<T>) {
        const Vec<T> old = load<T>(w + i);
        Vec<T> g = load<T>(gradient + i) + T(2) * penalty * old;
        g = at_most<T>(at_least<T>(g, -clip), clip);
        const Vec<T> m = b1 * load<T>(moment1 + i) + c1 * g;
        const Vec<T> v = b2 * load<T>(moment2 + i) + c2 * (g * g);
        store<T>(moment1 + i, m);
        store<T>(moment2 + i, v);
        store<T>(w + i, old - step * m / (square_root<T>(v) + T(StepSize::epsilon)));
    }
}

}  // namespace mvenet::MVENET_ISA
