// The standard normal distribution, a number a lane.
#pragma once

#include "simd.hpp"

namespace mvenet::MVENET_ISA {

// Probability below z, accurate where it is small, and density at z.
// Beyond |z| lies exp(-z²/2) times a function that falls like 1 / |z|: times |z| + 5 it is a
// polynomial in (|z| - 5) / (|z| + 5), here its Chebyshev series to 1e-16.
template <class T> MVENET_INLINE void standard_normal(Vec<T> z, Vec<T>& below, Vec<T>& density) {
    constexpr double polynomial[] = {
        0.76919304975006297,     -0.66538250289005763,    0.49530561596998052,
        -0.31353315667121717,    0.16502036617019517,     -0.069118638708741825,
        0.020795066803234039,    -0.0029933767389359726,  -0.00079786942774752966,
        0.0005448988347568596,   -5.9375588333777671e-05, -4.9761783740187888e-05,
        1.6680852719925394e-05,  3.9779382623434267e-06,  -2.7688787836720915e-06,
        -3.3110285443318109e-07, 4.3347664285137567e-07,  3.5844546560871596e-08,
        -6.7416890518236038e-08, -5.0272319309669823e-09, 9.2750822415373427e-09,
        5.059297487966696e-10,   -7.8544585832476578e-10};
    constexpr int degree = int(sizeof polynomial / sizeof(double)) - 1;
    const Vec<T> far = z < T(0) ? -z : z;
    const Vec<T> share = T(1) / (far + T(5)), u = T(1) - T(10) * share;
    Vec<T> p = splat<T>(T(polynomial[degree]));
#pragma GCC unroll 32
    for (int i = degree - 1; i >= 0; --i) p = p * u + T(polynomial[i]);
    const Vec<T> bell = exponential<T, true>(T(-0.5) * far * far);
    const Vec<T> beyond = bell * p * share;
    below = z < T(0) ? beyond : T(1) - beyond;
    density = bell * T(0.39894228040143267794);
}

// Probability below z, off by 1e-7 at most: Abramowitz and Stegun's 7.1.26.
MVENET_INLINE Vec<float> roughly_below(Vec<float> z) {
    // Farther out is next to nothing, and soon numbers with fewer digits, which are slow.
    const Vec<float> x = at_most<float>(0.70710678f * (z < 0.0f ? -z : z), 9.0f);
    const Vec<float> t = 1.0f / (1.0f + 0.3275911f * x);
    Vec<float> p = 1.061405429f * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const Vec<float> beyond = 0.5f * t * p * exponential<float, true>(-x * x);
    return z < 0.0f ? beyond : 1.0f - beyond;
}

}  // namespace mvenet::MVENET_ISA
