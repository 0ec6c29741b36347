// Quantiles, probabilities and scores of mixtures of normals: a mixture for each row, a row a lane.
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "normal.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

// The largest that is not above; of numbers so small that they have fewer digits, one above.
MVENET_INLINE Vec<double> power_of_two(Vec<double> v) {
    constexpr std::int64_t exponent = std::int64_t(0x7ff) << 52;
    constexpr double smallest = 2.2250738585072014e-308;
    return (Vec<double>)((IntVec<double>)at_least<double>(v, smallest) & exponent);
}

// The mixtures of as many rows as a vector has lanes. Means and places are in units of y, so that
// neither loses a digit; squares and derivatives are in units of powers of two, so that no scale of
// y is too large or too small for them.
class Mixture {
public:
    Mixture(const Mixtures& all, Arena& arena)
        : all_(all), means_(arena.array<double>(all.members * lanes<double>)),
          stds_(arena.array<double>(all.members * lanes<double>)),
          weights_(arena.array<double>(all.members * lanes<double>)),
          steepness_(arena.array<double>(all.members * lanes<double>)) {}

    // Those from `row` on; lanes past the last row get that once more.
    void read(std::int64_t row) {
        const std::int64_t last = all_.rows - 1;
        for (std::int64_t k = 0; k < all_.members; ++k)
            for (int i = 0; i < lanes<double>; ++i) {
                const std::int64_t at = k * all_.rows + (row + i < last ? row + i : last);
                means_[k * lanes<double> + i] = all_.means[at];
                stds_[k * lanes<double> + i] = all_.stds[at];
                weights_[k * lanes<double> + i] = all_.weights[all_.weights_by_row ? at : k];
            }
        Vec<double> narrowest = std(0);
        for (std::int64_t k = 1; k < all_.members; ++k)
            narrowest = std(k) < narrowest ? std(k) : narrowest;
        unit_ = power_of_two(narrowest);
        for (std::int64_t k = 0; k < all_.members; ++k)
            store<double>(steepness_ + k * lanes<double>, unit_ / std(k));
    }

    // Where tail(x, sign) is `mass`, that of a normal at `probit`. Each lane goes its own way: by
    // Halley's steps on the logarithm of the mass, which triple the digits, or by bisection where
    // such a step leaves what is known of the place or does not come closer by half.
    Vec<double> quantile(double mass, double sign, double probit) const {
        using V = Vec<double>;
        // Three or four steps are usual, and sixty bisections gain 18 digits. Where widths differ
        // by more than that, halving the count of the numbers in between comes to an end in 64.
        constexpr int usual = 60, most = usual + 64;
        constexpr double epsilon = 2.220446049250313e-16;
        // The quantile of a mixture lies between those of its members.
        V low = splat<double>(__builtin_inf()), high = -low;
        for (std::int64_t k = 0; k < all_.members; ++k) {
            const V own = mean(k) + sign * probit * std(k);
            low = own < low ? own : low;
            high = own > high ? own : high;
        }
        V x = guess(sign * probit);
        x = x > low ? x : low;  // also if it is not a number
        x = x < high ? x : high;
        V step = high - low;
        IntVec<double> active = step > 1e-13 * unit_;
        for (int i = 0; i < most && any(active); ++i) {
            V reached{}, slope{}, bend{};
            for (std::int64_t k = 0; k < all_.members; ++k) {
                const V z = near_enough(sign * (x - mean(k)) / std(k));
                if (all_far(z)) {
                    reached += z > 0.0 ? weight(k) : V{};
                    continue;
                }
                V below, density;
                standard_normal<double>(z, below, density);
                const V steepness = load<double>(steepness_ + k * lanes<double>);
                const V rise = weight(k) * density * steepness;
                reached += weight(k) * below;
                slope += rise;
                bend -= rise * z * steepness;
            }
            const IntVec<double> beyond = sign * (reached - mass) > 0.0;
            low = active & ~beyond ? x : low;
            high = active & beyond ? x : high;
            const V first = slope / reached, second = bend / reached - first * first;
            const V off = logarithm<double>(larger<double>(reached / mass, splat<double>(1e-300)));
            const V halley = 2.0 * off * first / (2.0 * first * first - off * second);
            const V near = x - sign * unit_ * halley;
            // A step that is lost beside x is an end only if it would have led there: on a plateau
            // it is short though the place is far, and a member may be narrower than x has digits.
            const IntVec<double> arrived =
                (absolute(first * halley) >= 0.5 * absolute(off)) & (absolute(off) <= 1e-6);
            const IntVec<double> good = (near >= low) & (near <= high) & ((near != x) | arrived) &
                                        (absolute(unit_ * halley) <= 0.5 * absolute(step)) &
                                        -std::int64_t(i < usual);
            const V middle = i < usual ? 0.5 * low + 0.5 * high : between(low, high);
            const V next = good ? near : middle;
            active = active & (absolute(reached - mass) > 4 * epsilon * mass);
            step = active ? next - x : step;
            x = active ? next : x;
            // A step of a millionth leaves an error of a millionth's cube; one of bisection not,
            // and what it leaves is told by the step only if the middle is that of the distance.
            const V left = i < usual ? absolute(step) : high - low;
            const V close = good ? 1e-6 * unit_ : 1e-13 * unit_ + 2 * epsilon * absolute(x);
            active = active & (left > close);
        }
        return x;
    }

    // Probability below x, or above it with a negative sign; small ones keep their digits.
    Vec<double> tail(Vec<double> x, double sign) const {
        Vec<double> total{};
        for (std::int64_t k = 0; k < all_.members; ++k) {
            const Vec<double> z = near_enough(sign * (x - mean(k)) / std(k));
            if (!any((z > -farthest) & (z < whole))) {
                total += z > 0.0 ? weight(k) : Vec<double>{};
                continue;
            }
            Vec<double> own, density;
            standard_normal<double>(z, own, density);
            total += weight(k) * own;
        }
        return total;
    }

    // Probability from low to high, and the first two moments about c that are there.
    void partial(double low, double high, Vec<double> c, Vec<double> (&out)[3]) const {
        using V = Vec<double>;
        const auto place = [&](double end, std::int64_t k) {
            return near_enough((end - mean(k)) / std(k));
        };
        // Of a whole vector beyond all that counts nothing needs to be computed: an end may be
        // none.
        const auto at = [](V z, V& below, V& bell) {
            if (!all_far(z)) return standard_normal<double>(z, below, bell);
            below = z > 0.0 ? splat<double>(1) : V{};
            bell = V{};
        };
        for (V& total : out) total = V{};
        for (std::int64_t k = 0; k < all_.members; ++k) {
            const V a = place(low, k), b = place(high, k);
            if (all_far(a) && all_far(b) && !any(a != b)) continue;  // the same side of both ends
            V below_a, below_b, bell_a, bell_b;
            at(a, below_a, bell_a);
            at(b, below_b, bell_b);
            const V share = below_b - below_a, bell = bell_b - bell_a;
            const V reach = b * bell_b - a * bell_a, apart = mean(k) - c, s = std(k);
            out[0] += weight(k) * share;
            out[1] += weight(k) * (apart * share - s * bell);
            const V square = apart * apart + s * s;
            out[2] += weight(k) * (square * share - 2.0 * apart * s * bell - s * s * reach);
        }
    }

    // Continuous ranked probability score at y: E|Y - y| - E|Y - Y'| / 2.
    Vec<double> crps(Vec<double> y) const {
        using V = Vec<double>;
        constexpr double of_one = 0.56418958354775628695;  // half of E|N(0, 2)|
        V score{};
        for (std::int64_t k = 0; k < all_.members; ++k) {
            V between{};  // the member and those before it
            for (std::int64_t j = 0; j < k; ++j) {
                const V wide = larger<double>(std(j), std(k));
                const V share = smaller<double>(std(j), std(k)) / wide;  // no square overflows
                const V both = wide * square_root<double>(1.0 + share * share);
                between += weight(j) * mean_absolute(mean(k) - mean(j), both);
            }
            const V own = mean_absolute(y - mean(k), std(k)) - weight(k) * std(k) * of_one;
            score += weight(k) * (own - between);
        }
        return score;
    }

private:
    Vec<double> mean(std::int64_t k) const { return load<double>(means_ + k * lanes<double>); }
    Vec<double> std(std::int64_t k) const { return load<double>(stds_ + k * lanes<double>); }
    Vec<double> weight(std::int64_t k) const { return load<double>(weights_ + k * lanes<double>); }

    // E|N(m, s²)|
    static Vec<double> mean_absolute(Vec<double> m, Vec<double> s) {
        const Vec<double> far = absolute(m), z = near_enough(far / s);
        if (all_far(z)) return far;
        Vec<double> beyond, density;
        standard_normal<double>(-z, beyond, density);
        return far * (1.0 - 2.0 * beyond) + 2.0 * s * density;
    }

    // Nothing is left beyond so many standard deviations: 6e-300, and a little farther only numbers
    // with fewer digits, on which processors spend a hundred times as long.
    static constexpr double farthest = 37;
    static Vec<double> near_enough(Vec<double> z) {
        return at_most<double>(at_least<double>(z, -farthest), farthest);
    }
    // Above, one less the rest is one to the last bit.
    static constexpr double whole = 8.3;
    // Whether nothing is left in any lane: a narrow member of a free shape is far from most places,
    // and then needs no exponential. The sums are the same to the bit.
    static bool all_far(Vec<double> z) { return !any(absolute(z) < farthest); }

    // The quantile of the normal that has the mixture's mean and standard deviation.
    Vec<double> guess(double z) const {
        using V = Vec<double>;
        const V origin = mean(0);
        V widest = std(0), centre{}, square{};
        for (std::int64_t k = 1; k < all_.members; ++k) {
            widest = larger<double>(widest, std(k));
            widest = larger<double>(widest, absolute(mean(k) - origin));
        }
        const V unit = power_of_two(widest), share = 1.0 / unit;
        for (std::int64_t k = 0; k < all_.members; ++k)
            centre += weight(k) * ((mean(k) - origin) * share);
        for (std::int64_t k = 0; k < all_.members; ++k) {
            const V apart = (mean(k) - origin) * share - centre, own = std(k) * share;
            square += weight(k) * (own * own + apart * apart);
        }
        return origin + unit * (centre + z * square_root<double>(square));
    }

    // Halfway between two numbers if all that there are between them are counted.
    static Vec<double> between(Vec<double> a, Vec<double> b) {
        const IntVec<double> i = counted((IntVec<double>)a), j = counted((IntVec<double>)b);
        return (Vec<double>)counted((i & j) + ((i ^ j) >> 1));
    }
    // The bits of a number as an integer that grows with it, and back.
    static IntVec<double> counted(IntVec<double> bits) { return bits ^ ((bits >> 63) & largest); }
    static constexpr std::int64_t largest = 0x7fffffffffffffff;
    static Vec<double> absolute(Vec<double> v) { return v < 0.0 ? -v : v; }
    static bool any(IntVec<double> flags) {
        std::int64_t all = 0;
        for (int i = 0; i < lanes<double>; ++i) all |= flags[i];
        return all != 0;
    }

    const Mixtures& all_;
    double *means_, *stds_, *weights_;
    double* steepness_;  // of each member, of the narrowest's: one and less
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

// Probability below each of the places, [place][row], or above them with a negative sign. Places
// are the same for all rows, or by row: [place][row].
static void probabilities(const Mixtures& all, const double* places, std::int64_t count,
                          bool by_row, double sign, double* out) {
    Arena arena;
    Mixture mixture(all, arena);
    for (std::int64_t row = 0; row < all.rows; row += lanes<double>) {
        mixture.read(row);
        for (std::int64_t j = 0; j < count; ++j) {
            Vec<double> x = splat<double>(by_row ? 0.0 : places[j]);
            for (int i = 0; by_row && i < lanes<double> && row + i < all.rows; ++i)
                x[i] = places[j * all.rows + row + i];
            const Vec<double> found = mixture.tail(x, sign);
            for (int i = 0; i < lanes<double> && row + i < all.rows; ++i)
                out[j * all.rows + row + i] = found[i];
        }
    }
}

// Two halves of a vector.
template <class Half, int... I>
MVENET_INLINE Vec<float> joined(Half a, Half b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, I...);
}

// The same below places that are the same for all rows, to six decimals: for comparisons of
// thousands of mixtures at hundreds of places, where the rest is lost beside chance.
static void shares_below(const Mixtures& all, const double* places, std::int64_t count,
                         float* out) {
    constexpr int w = lanes<float>, half = lanes<double>;
    typedef float Narrow __attribute__((vector_size(sizeof(float) * half)));
    Arena arena;
    double* const mean = arena.array<double>(all.members * w);
    double* const steepness = arena.array<double>(all.members * w);
    float* const weight = arena.array<float>(all.members * w);
    for (std::int64_t row = 0; row < all.rows; row += w) {
        const int here = int(all.rows - row < w ? all.rows - row : w);
        for (std::int64_t k = 0; k < all.members; ++k)
            for (int i = 0; i < w; ++i) {
                const std::int64_t at = k * all.rows + row + (i < here ? i : 0);
                mean[k * w + i] = all.means[at];
                steepness[k * w + i] = 1 / all.stds[at];
                weight[k * w + i] = float(all.weights[all.weights_by_row ? at : k]);
            }
        for (std::int64_t j = 0; j < count; ++j) {
            Vec<float> total{};
            for (std::int64_t k = 0; k < all.members; ++k) {
                const auto deviations = [&](std::int64_t at) {
                    const Vec<double> apart = places[j] - load<double>(mean + at);
                    return __builtin_convertvector(apart * load<double>(steepness + at), Narrow);
                };
                const Vec<float> z = joined(deviations(k * w), deviations(k * w + half),
                                            std::make_integer_sequence<int, w>{});
                total += load<float>(weight + k * w) * roughly_below(z);
            }
            __builtin_memcpy(out + j * all.rows + row, &total, sizeof(float) * std::size_t(here));
        }
    }
}

// Of each cell, [cell][2], the probability and two moments about each row's origin, [3][cell][row].
static void partials(const Mixtures& all, const double* cells, std::int64_t count,
                     const double* origin, double* out) {
    Arena arena;
    Mixture mixture(all, arena);
    for (std::int64_t row = 0; row < all.rows; row += lanes<double>) {
        mixture.read(row);
        Vec<double> c{}, found[3];
        for (int i = 0; i < lanes<double> && row + i < all.rows; ++i) c[i] = origin[row + i];
        for (std::int64_t j = 0; j < count; ++j) {
            mixture.partial(cells[2 * j], cells[2 * j + 1], c, found);
            for (int part = 0; part < 3; ++part)
                for (int i = 0; i < lanes<double> && row + i < all.rows; ++i)
                    out[(part * count + j) * all.rows + row + i] = found[part][i];
        }
    }
}

// Mean and standard deviation, [2][row]. A few vectors of rows at a time: what a member says of
// them lies together, but what the next one says far away.
static void moments(const Mixtures& all, double* out) {
    using V = Vec<double>;
    constexpr int w = lanes<double>, vectors = 8;
    const auto read = [](const double* from, std::int64_t count) {
        if (count >= w) return load<double>(from);
        V some{};
        for (int i = 0; i < w; ++i) some[i] = from[i < count ? i : 0];
        return some;
    };
    for (std::int64_t row = 0; row < all.rows; row += vectors * w) {
        const std::int64_t left = all.rows - row;
        const int used = int(left < vectors * w ? (left + w - 1) / w : vectors);
        const auto of = [&](const double* numbers, std::int64_t k, int v) {
            return read(numbers + k * all.rows + row + v * w, left - v * w);
        };
        const auto weight = [&](std::int64_t k, int v) {
            return all.weights_by_row ? of(all.weights, k, v) : splat<double>(all.weights[k]);
        };
        V centre[vectors]{}, widest[vectors]{}, square[vectors]{};
        for (std::int64_t k = 0; k < all.members; ++k)
            for (int v = 0; v < used; ++v) {
                centre[v] += weight(k, v) * of(all.means, k, v);
                widest[v] = larger<double>(widest[v], of(all.stds, k, v));
            }
        for (int v = 0; v < used; ++v) widest[v] = power_of_two(widest[v]);
        for (std::int64_t k = 0; k < all.members; ++k)
            for (int v = 0; v < used; ++v) {  // no square overflows, and none is lost
                const V own = of(all.stds, k, v) / widest[v];
                const V apart = (of(all.means, k, v) - centre[v]) / widest[v];
                square[v] += weight(k, v) * (own * own + apart * apart);
            }
        for (int v = 0; v < used; ++v) {
            const V std = widest[v] * square_root<double>(square[v]);
            for (int i = 0; i < w && v * w + i < left; ++i) {
                out[row + v * w + i] = centre[v][i];
                out[all.rows + row + v * w + i] = std[i];
            }
        }
    }
}

// Continuous ranked probability score of each row's outcome.
static void crps(const Mixtures& all, const double* y, double* out) {
    Arena arena;
    Mixture mixture(all, arena);
    for (std::int64_t row = 0; row < all.rows; row += lanes<double>) {
        mixture.read(row);
        Vec<double> x{};
        for (int i = 0; i < lanes<double> && row + i < all.rows; ++i) x[i] = y[row + i];
        const Vec<double> score = mixture.crps(x);
        for (int i = 0; i < lanes<double> && row + i < all.rows; ++i) out[row + i] = score[i];
    }
}

}  // namespace mvenet::MVENET_ISA
