// From the caller's table to what the networks see.
#pragma once

#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

MVENET_INLINE double standardised(double value, double mean, double scale) {
    const double z = (value - mean) / scale;
    return z > farthest ? farthest : z < -farthest ? -farthest : z;
}

template <bool Bounded>
MVENET_INLINE double input(double value, double mean, double scale, double bound) {
    const double z = standardised(value, mean, scale);
    if (!Bounded) return z;
    const double part = z / bound;
    return z / __builtin_sqrt(1 + part * part);
}

// The same for as many columns as there are doubles in a register, whatever their type.
template <class T, class From, bool Bounded>
MVENET_INLINE void inputs(const From* from, Vec<double> mean, Vec<double> scale, double bound,
                          T* to) {
    typedef From Given __attribute__((vector_size(sizeof(From) * lanes<double>)));
    typedef T Kept __attribute__((vector_size(sizeof(T) * lanes<double>)));
    Given given;
    __builtin_memcpy(&given, from, sizeof given);
    Vec<double> z = (__builtin_convertvector(given, Vec<double>) - mean) / scale;
    z = at_most<double>(at_least<double>(z, -farthest), farthest);
    if (Bounded) {
        const Vec<double> part = z / bound;
        z = z / square_root<double>(1 + part * part);
    }
    const Kept kept = __builtin_convertvector(z, Kept);
    __builtin_memcpy(to, &kept, sizeof kept);
}

// n rows, `stride` numbers apart. Whole registers are read and written, past the end of a row into
// the next: of the table, unless that is the last one in memory, and of x, which has room for a
// register more.
template <class T, class From, bool Bounded>
void standardise_rows(const Table& table, const Scaling& scaling, const std::int64_t* rows,
                      std::int64_t start, std::int64_t n, T* x, std::ptrdiff_t stride) {
    constexpr int w = lanes<double>;
    const int d = table.columns, whole = d / w * w;
    const std::ptrdiff_t step = table.column_stride;
    const double *mean = scaling.x_mean, *scale = scaling.x_scale;
    Vec<double> last_mean{}, last_scale = splat<double>(1);
    for (int j = whole; j < d; ++j) {
        last_mean[j - whole] = mean[j];
        last_scale[j - whole] = scale[j];
    }
    const std::ptrdiff_t highest = table.row_stride > 0 ? (table.rows - 1) * table.row_stride : 0;
    const std::ptrdiff_t safe = highest + d - whole - (whole < d ? w : 0);
    for (std::int64_t i = 0; i < n; ++i, x += stride) {
        const std::ptrdiff_t at = (rows ? rows[i] : start + i) * table.row_stride;
        const From* const from = static_cast<const From*>(table.x) + at;
        if (step != 1 || at > safe) {
            for (int j = 0; j < d; ++j)
                x[j] = T(input<Bounded>(double(from[j * step]), mean[j], scale[j], scaling.bound));
            continue;
        }
        for (int j = 0; j < whole; j += w)
            inputs<T, From, Bounded>(from + j, load<double>(mean + j), load<double>(scale + j),
                                     scaling.bound, x + j);
        if (whole < d)
            inputs<T, From, Bounded>(from + whole, last_mean, last_scale, scaling.bound, x + whole);
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
