// What is minimised: for each objective the two derivatives that training starts from, and the
// loss that is recorded.
//
// r is the residual y - mean, v the variance (of Student's t the square of its scale). How mean and
// variance follow from the networks' outputs is the link's affair. The recorded loss of a row is
// twice the negative log-likelihood without its constant, so that histories can be compared: that
// of a normal is log v + r^2 / v, that of Student's t log v + (df + 1) log(1 + r^2 / (df v)).
//
// The continuous ranked probability score of a normal is minimised times 2 sqrt(pi): where the
// standard deviation is that of y, the mean then has the curvature that it has under the
// likelihood, and penalties mean the same.
#pragma once

#include "kernel.hpp"
#include "normal.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

template <class T> struct Loss {
    Objective objective;
    T beta, df;
    static constexpr T root = T(3.54490770181103205460);  // 2 sqrt(pi)

    MVENET_INLINE Vec<T> row(Vec<T> r, Vec<T> v) const {
        if (objective == Objective::student_t)
            return logarithm<T>(v) + (df + T(1)) * logarithm<T>(T(1) + r * r / (df * v));
        return logarithm<T>(v) + r * r / v;
    }

    MVENET_INLINE Vec<T> d_mean(Vec<T> r, Vec<T> v) const {
        switch (objective) {
            case Objective::nll:
            case Objective::natural: return T(-2) * r / v;
            case Objective::beta_nll: return T(-2) * r / v * exponential<T>(beta * logarithm<T>(v));
            case Objective::faithful: return T(-2) * r;
            case Objective::student_t: return T(-2) * (df + T(1)) * r / (df * v + r * r);
            case Objective::crps: {
                Vec<T> below, density;
                standard_normal<T>(r / square_root<T>(v), below, density);
                return root * (T(1) - T(2) * below);
            }
        }
        __builtin_unreachable();
    }

    MVENET_INLINE Vec<T> d_log_variance(Vec<T> r, Vec<T> v) const {
        const Vec<T> nll = T(1) - r * r / v;
        switch (objective) {
            case Objective::nll:
            case Objective::natural:
            case Objective::faithful: return nll;
            case Objective::beta_nll: return nll * exponential<T>(beta * logarithm<T>(v));
            case Objective::student_t: return T(1) - (df + T(1)) * r * r / (df * v + r * r);
            case Objective::crps: {
                const Vec<T> std = square_root<T>(v);
                Vec<T> below, density;
                standard_normal<T>(r / std, below, density);
                return std * (root * density - T(1));
            }
        }
        __builtin_unreachable();
    }
};

}  // namespace mvenet::MVENET_ISA
