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

// n rows without gaps, from a table whose columns lie `step` numbers apart.
template <class T, class From, bool Bounded>
void standardise_rows(const Table& table, const Scaling& scaling, const std::int64_t* rows,
                      std::int64_t start, std::int64_t n, T* __restrict x) {
    const int d = table.columns;
    const std::ptrdiff_t step = table.column_stride;
    const double* __restrict mean = scaling.x_mean;
    const double* __restrict scale = scaling.x_scale;
    for (std::int64_t i = 0; i < n; ++i, x += d) {
        const std::int64_t row = rows ? rows[i] : start + i;
        const From* __restrict from = static_cast<const From*>(table.x) + row * table.row_stride;
        if (step == 1)
            for (int j = 0; j < d; ++j)
                x[j] = T(input<Bounded>(double(from[j]), mean[j], scale[j], scaling.bound));
        else
            for (int j = 0; j < d; ++j)
                x[j] = T(input<Bounded>(double(from[j * step]), mean[j], scale[j], scaling.bound));
    }
}

template <class T>
void standardise(const Table& table, const Scaling& scaling, const std::int64_t* rows,
                 std::int64_t start, std::int64_t n, T* x) {
    const bool bounded = scaling.bound != __builtin_inf();
    const auto run =
        table.is_double
            ? (bounded ? standardise_rows<T, double, true> : standardise_rows<T, double, false>)
            : (bounded ? standardise_rows<T, float, true> : standardise_rows<T, float, false>);
    run(table, scaling, rows, start, n, x);
}

}  // namespace mvenet::MVENET_ISA
