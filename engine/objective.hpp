// What is minimised: for each objective two formulas, d loss / d mean and d loss / d log variance.
//
// r is the residual y - mean, v the variance. The loss of a row is log v + r^2 / v: twice the
// negative log-likelihood of a Gaussian, without its constant. How mean and variance follow from
// the networks' outputs is the link's affair.
#pragma once

#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

template <class T> MVENET_INLINE Vec<T> row_loss(Vec<T> r, Vec<T> v) {
    return logarithm<T>(v) + r * r / v;
}

template <class T> MVENET_INLINE Vec<T> d_mean(Objective objective, T beta, Vec<T> r, Vec<T> v) {
    switch (objective) {
        case Objective::nll: return T(-2) * r / v;
        case Objective::beta_nll: return T(-2) * r / v * exponential<T>(beta * logarithm<T>(v));
        case Objective::faithful: return T(-2) * r;
    }
    __builtin_unreachable();
}

template <class T>
MVENET_INLINE Vec<T> d_log_variance(Objective objective, T beta, Vec<T> r, Vec<T> v) {
    const Vec<T> nll = T(1) - r * r / v;
    switch (objective) {
        case Objective::nll: return nll;
        case Objective::beta_nll: return nll * exponential<T>(beta * logarithm<T>(v));
        case Objective::faithful: return nll;
    }
    __builtin_unreachable();
}

}  // namespace mvenet::MVENET_ISA
