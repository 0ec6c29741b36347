// From the caller's table to what the networks see.
#pragma once

#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

// What to multiply by, as dividing by a scale would take most of the time here. No scale is too
// small to have one.
MVENET_INLINE Vec<double> inverse(Vec<double> scale) {
    return at_most<double>(1 / scale, __DBL_MAX__);
}
MVENET_INLINE double inverse(double scale) {
    return 1 / scale < __DBL_MAX__ ? 1 / scale : __DBL_MAX__;
}

MVENET_INLINE double clamped(double z) {
    return z > farthest ? farthest : z < -farthest ? -farthest : z;
}

MVENET_INLINE double standardised(double value, double mean, double scale) {
    return clamped((value - mean) * inverse(scale));
}

MVENET_INLINE double bounded_input(double value, double mean, double scale, double bound) {
    const double z = standardised(value, mean, scale);
    const double part = z / bound;
    return z / __builtin_sqrt(1 + part * part);
}

// The same for as many columns as there are doubles in a register, bounded or not.
template <bool Bounded>
MVENET_INLINE Vec<double> inputs(Vec<double> value, Vec<double> mean, Vec<double> inverse,
                                 double bound) {
    Vec<double> z = (value - mean) * inverse;
    z = at_most<double>(at_least<double>(z, -farthest), farthest);
    if (!Bounded) return z;
    const Vec<double> part = z / bound;
    return z / square_root<double>(1 + part * part);
}

// n rows, `stride` numbers apart, the last columns first: whole registers are written, past the end
// of a row into the next; x has room for a register more. They are read, too, if they are in one
// piece and nothing lies past the table's end.
template <class T, class From, bool Bounded>
void standardise_rows(const Table& table, const Scaling& scaling, const std::int64_t* rows,
                      std::int64_t start, std::int64_t n, T* x, std::ptrdiff_t stride) {
    constexpr int w = lanes<double>;
    typedef From Given __attribute__((vector_size(sizeof(From) * w)));
    typedef T Kept __attribute__((vector_size(sizeof(T) * w)));
    const int d = table.columns;
    const std::ptrdiff_t step = table.column_stride;
    const std::ptrdiff_t highest = table.row_stride > 0 ? (table.rows - 1) * table.row_stride : 0;
    for (int j = (d - 1) / w * w; j >= 0; j -= w) {
        const int count = d - j < w ? d - j : w;
        Vec<double> mean{}, scale = splat<double>(1);
        __builtin_memcpy(&mean, scaling.x_mean + j, sizeof(double) * std::size_t(count));
        __builtin_memcpy(&scale, scaling.x_scale + j, sizeof(double) * std::size_t(count));
        const Vec<double> factor = inverse(scale);
        const std::ptrdiff_t safe = highest + d - j - w;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::ptrdiff_t at = (rows ? rows[i] : start + i) * table.row_stride;
            const From* const from = static_cast<const From*>(table.x) + at + j * step;
            Given given{};
            if (step == 1 && at <= safe)
                __builtin_memcpy(&given, from, sizeof given);
            else
                for (int k = 0; k < count; ++k) given[k] = from[k * step];
            const Vec<double> z = inputs<Bounded>(__builtin_convertvector(given, Vec<double>), mean,
                                                  factor, scaling.bound);
            const Kept kept = __builtin_convertvector(z, Kept);
            __builtin_memcpy(x + i * stride + j, &kept, sizeof kept);
        }
    }
}

template <class T>
void standardise(const Table& table, const Scaling& scaling, const std::int64_t* rows,
                 std::int64_t start, std::int64_t n, T* x, std::ptrdiff_t stride) {
    const bool bounded = scaling.bound != __builtin_inf();
    const auto run =
        table.is_double
            ? (bounded ? standardise_rows<T, double, true> : standardise_rows<T, double, false>)
            : (bounded ? standardise_rows<T, float, true> : standardise_rows<T, float, false>);
    run(table, scaling, rows, start, n, x, stride);
}

}  // namespace mvenet::MVENET_ISA
