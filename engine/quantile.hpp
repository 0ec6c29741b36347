// Quantiles of mixtures of normals, a mixture for each row; rows are lanes.
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

// Probability below z of the standard normal, accurate where it is small, and density at z.
// Beyond |z| lies exp(-z²/2) times a function that falls like 1 / |z|: times |z| + 5 it is a
// polynomial in (|z| - 5) / (|z| + 5), here its Chebyshev series to 1e-16.
MVENET_INLINE void standard_normal(Vec<double> z, Vec<double>& below, Vec<double>& density) {
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
    const Vec<double> far = z < 0.0 ? -z : z;
    const Vec<double> share = 1.0 / (far + 5.0), u = 1.0 - 10.0 * share;
    Vec<double> p = splat<double>(polynomial[degree]);
#pragma GCC unroll 32
    for (int i = degree - 1; i >= 0; --i) p = p * u + polynomial[i];
    const Vec<double> bell = exponential<double, true>(-0.5 * far * far);
    const Vec<double> beyond = bell * p * share;
    below = z < 0.0 ? beyond : 1.0 - beyond;
    density = bell * 0.39894228040143267794;
}

// The mixtures of as many rows as a vector has lanes, in units of a power of two close to the
// narrowest member's standard deviation: this loses no digit, and no scale of y is too large or
// too small.
class Mixture {
public:
    Mixture(const Mixtures& all, Arena& arena)
        : all_(all), means_(arena.array<double>(all.members * lanes<double>)),
          stds_(arena.array<double>(all.members * lanes<double>)) {}

    // Those from `row` on; lanes past the last row get that once more.
    void read(std::int64_t row) {
        const std::int64_t last = all_.rows - 1;
        for (std::int64_t k = 0; k < all_.members; ++k)
            for (int i = 0; i < lanes<double>; ++i) {
                const std::int64_t at = k * all_.rows + (row + i < last ? row + i : last);
                means_[k * lanes<double> + i] = all_.means[at];
                stds_[k * lanes<double> + i] = all_.stds[at];
            }
        Vec<double> narrowest = std(0);
        for (std::int64_t k = 1; k < all_.members; ++k)
            narrowest = std(k) < narrowest ? std(k) : narrowest;
        constexpr std::int64_t exponent = std::int64_t(0x7ff) << 52;
        constexpr double smallest = 2.2250738585072014e-308;  // whose exponent is not zero
        unit_ = (Vec<double>)((IntVec<double>)at_least<double>(narrowest, smallest) & exponent);
        for (std::int64_t k = 0; k < all_.members; ++k) {
            store<double>(means_ + k * lanes<double>, within(mean(k) / unit_));
            store<double>(stds_ + k * lanes<double>, within(std(k) / unit_));
        }
    }

    // Where tail(x, sign) is `mass`, that of a normal at `probit`. Each lane goes its own way: by
    // Halley's steps on the logarithm of the mass, which triple the digits, or by bisection where
    // such a step leaves what is known of the place or does not come closer by half.
    Vec<double> quantile(double mass, double sign, double probit) const {
        using V = Vec<double>;
        constexpr int most = 200;  // three or four are usual; bisection gains a factor 1e60
        constexpr double epsilon = 2.220446049250313e-16;
        // The quantile of a mixture lies between those of its members.
        V low = splat<double>(__builtin_inf()), high = -low, centre{}, square{};
        for (std::int64_t k = 0; k < all_.members; ++k) {
            const V own = mean(k) + sign * probit * std(k);
            low = own < low ? own : low;
            high = own > high ? own : high;
            centre += all_.weights[k] * mean(k);
        }
        for (std::int64_t k = 0; k < all_.members; ++k) {
            const V apart = mean(k) - centre;
            square += all_.weights[k] * (std(k) * std(k) + apart * apart);
        }
        V x = centre + sign * probit * square_root<double>(square);
        x = x < low ? low : x;
        x = x > high ? high : x;
        V step = high - low;
        IntVec<double> active = step > 1e-13;
        for (int i = 0; i < most && any(active); ++i) {
            V reached{}, slope{}, bend{};
            for (std::int64_t k = 0; k < all_.members; ++k) {
                constexpr double farthest = 40;  // nothing is left there, and nothing overflows
                const V inverse = 1.0 / std(k);
                const V z = at_most<double>(
                    at_least<double>(sign * (x - mean(k)) * inverse, -farthest), farthest);
                V below, density;
                standard_normal(z, below, density);
                const V rise = all_.weights[k] * density * inverse;
                reached += all_.weights[k] * below;
                slope += rise;
                bend -= rise * z * inverse;
            }
            const IntVec<double> beyond = sign * (reached - mass) > 0.0;
            low = active & ~beyond ? x : low;
            high = active & beyond ? x : high;
            const V first = slope / reached, second = bend / reached - first * first;
            const V off = logarithm<double>(larger<double>(reached / mass, splat<double>(1e-300)));
            const V halley = 2.0 * off * first / (2.0 * first * first - off * second);
            const V near = x - sign * halley;
            const IntVec<double> exact = absolute(reached - mass) <= 4 * epsilon * mass;
            const IntVec<double> good =
                (near >= low) & (near <= high) & (absolute(halley) <= 0.5 * absolute(step));
            const V next = exact ? x : good ? near : 0.5 * low + 0.5 * high;
            step = active ? next - x : step;
            x = active ? next : x;
            // A step of a millionth leaves an error of a millionth's cube; one of bisection not.
            const V close = good ? splat<double>(1e-6) : splat<double>(1e-13);
            active = active & (absolute(step) > close + 2 * epsilon * absolute(x));
        }
        return unit_ * x;
    }

private:
    Vec<double> mean(std::int64_t k) const { return load<double>(means_ + k * lanes<double>); }
    Vec<double> std(std::int64_t k) const { return load<double>(stds_ + k * lanes<double>); }
    // Whose square is finite.
    static Vec<double> within(Vec<double> v) {
        return at_most<double>(at_least<double>(v, -1e150), 1e150);
    }
    static Vec<double> absolute(Vec<double> v) { return v < 0.0 ? -v : v; }
    static bool any(IntVec<double> flags) {
        std::int64_t all = 0;
        for (int i = 0; i < lanes<double>; ++i) all |= flags[i];
        return all != 0;
    }

    const Mixtures& all_;
    double *means_, *stds_;
    Vec<double> unit_;
};

static void quantiles(const Mixtures& all, double mass, double sign, double probit, double* out) {
    Arena arena;
    Mixture mixture(all, arena);
    for (std::int64_t row = 0; row < all.rows; row += lanes<double>) {
        mixture.read(row);
        const Vec<double> x = mixture.quantile(mass, sign, probit);
        for (int i = 0; i < lanes<double> && row + i < all.rows; ++i) out[row + i] = x[i];
    }
}

}  // namespace mvenet::MVENET_ISA
