// The link: what the outputs of the two networks mean.
//
// The second network's output, s, gives the variance e^s + floor. The first's is the mean or, of
// natural parameters, the mean divided by the variance. All other files ask here, so another link
// (a softplus, a bounded variance) is a change of this file.
#pragma once

#include "simd.hpp"

namespace mvenet::MVENET_ISA {

constexpr double variance_floor = 1e-6;  // in standardised units
constexpr double warmup_variance =
    2.71828182845904523536;  // of the warm-up: exp(1), exactly constant

template <class T> struct Linked {
    Vec<T> mean, variance;
    Vec<T> slope;  // d log variance / d output of the second network
};

template <class T> MVENET_INLINE Linked<T> linked(Vec<T> first, Vec<T> second) {
    const Vec<T> e = exponential<T>(second);
    const Vec<T> variance = e + T(variance_floor);
    return {first, variance, e / variance};
}

// The same of natural parameters: d mean / d first is the variance, not one, and the mean depends
// on the second network, too.
template <class T> MVENET_INLINE Linked<T> linked_naturally(Vec<T> first, Vec<T> second) {
    Linked<T> out = linked<T>(first, second);
    out.mean = first * out.variance;
    return out;
}

// The same in a warm-up, where the second network does not take part.
template <class T> MVENET_INLINE Linked<T> linked(Vec<T> first) {
    return {first, splat<T>(T(warmup_variance)), Vec<T>{}};
}

// The second network's output for a given variance.
inline double output_of_variance(double variance) {
    return __builtin_log(variance > variance_floor ? variance : variance_floor);
}

}  // namespace mvenet::MVENET_ISA
