// Adam on a regularised gradient that is clipped element by element.
//
// Square root and division are the processor's own, exactly rounded: an approximate reciprocal
// would be no faster here and would give other bits on other makers' processors.
#pragma once

#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

constexpr double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-7;

class StepSize {
public:
    StepSize(const Stage& stage, std::int64_t steps)
        : rate_(stage.learning_rate), schedule_(stage.schedule), steps_(steps) {}

    // learning rate of the next step, times the correction for moments that started at zero
    double next() {
        const double rate = rate_ * part();
        ++step_;
        power1_ *= adam_beta1;
        power2_ *= adam_beta2;
        return rate * __builtin_sqrt(1 - power2_) / (1 - power1_);
    }

private:
    // of the learning rate, in the step that comes
    double part() const {
        const std::int64_t ramp = steps_ / 20;
        switch (schedule_) {
            case Schedule::constant: return 1;
            case Schedule::cosine: return half_cosine(step_, steps_);
            case Schedule::ramp_cosine:
                return step_ < ramp ? double(step_ + 1) / double(ramp + 1)
                                    : half_cosine(step_ - ramp, steps_ - ramp);
        }
        __builtin_unreachable();
    }

    static double half_cosine(std::int64_t step, std::int64_t steps) {
        constexpr double pi = 3.14159265358979323846;
        return 0.5 * (1 + __builtin_cos(pi * double(step) / double(steps)));
    }

    double rate_;
    Schedule schedule_;
    std::int64_t steps_, step_ = 0;
    double power1_ = 1, power2_ = 1;
};

// n parameters with one penalty: the gradient of penalty * w^2 is 2 * penalty * w.
template <class T>
MVENET_INLINE void adam(T* w, const T* gradient, T* moment1, T* moment2, std::ptrdiff_t n,
                        T penalty, T clip, T step) {
    constexpr T b1 = T(adam_beta1), c1 = T(1 - adam_beta1);
    constexpr T b2 = T(adam_beta2), c2 = T(1 - adam_beta2);
    for (std::ptrdiff_t i = 0; i < n; i += lanes<T>) {
        const Vec<T> old = load<T>(w + i);
        Vec<T> g = load<T>(gradient + i) + T(2) * penalty * old;
        g = at_most<T>(at_least<T>(g, -clip), clip);
        const Vec<T> m = b1 * load<T>(moment1 + i) + c1 * g;
        const Vec<T> v = b2 * load<T>(moment2 + i) + c2 * (g * g);
        store<T>(moment1 + i, m);
        store<T>(moment2 + i, v);
        store<T>(w + i, old - step * m / (square_root<T>(v) + T(adam_epsilon)));
    }
}

}  // namespace mvenet::MVENET_ISA
