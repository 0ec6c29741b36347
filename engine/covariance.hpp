// What a Gaussian process learns its scales from: the covariances of its rows, and what each pair
// of rows has to say about each scale.
//
// The second row of a pair is in the lanes, so that matrices are read and written line by line.
// Only their lower triangles are: they are symmetric.
#pragma once

#include <algorithm>
#include <cstring>

#include "arena.hpp"
#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

constexpr int line_vectors = 4, line_tile = line_vectors * lanes<double>;  // summed at a time

// The three kernels at the distances of some rows from one of them.
struct Matern {
    Vec<double> distance, rough, smoother, smooth;

    explicit Matern(Vec<double> square)
        : distance(square_root<double>(square)), rough(exponential<double, true>(-distance)),
          smoother((1.0 + distance) * rough), smooth(smoother + square * (1.0 / 3.0) * rough) {}
};

// Numbers at p, as many as are wanted; zeros in the other lanes.
MVENET_INLINE Vec<double> first(const double* p, std::ptrdiff_t wanted) {
    if (wanted >= lanes<double>) return load<double>(p);
    Vec<double> some = {};
    std::memcpy(&some, p, sizeof(double) * std::size_t(wanted));
    return some;
}

// Squared distances of row i from the rows in the lanes from j on.
MVENET_INLINE Vec<double> squares(const Pairs& pairs, std::ptrdiff_t i, std::ptrdiff_t j) {
    Vec<double> square = {};
    for (int c = 0; c < pairs.columns; ++c) {
        const double* const column = pairs.points + c * pairs.stride;
        const Vec<double> apart = load<double>(column + j) - column[i];
        square += apart * apart;
    }
    return square;
}

static void covariances(const Pairs& pairs, double* out) {
    const double* const a = pairs.amplitudes;
    const std::ptrdiff_t n = pairs.rows;
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j <= i; j += lanes<double>) {
            const std::ptrdiff_t count = std::min<std::ptrdiff_t>(i + 1 - j, lanes<double>);
            const Matern k(squares(pairs, i, j));
            const Vec<double> value = a[0] * k.rough + a[1] * k.smoother + a[2] * k.smooth +
                                      pairs.slope * first(pairs.linear + i * n + j, count);
            std::memcpy(out + i * n + j, &value, sizeof(double) * std::size_t(count));
        }
}

// Sum of factor[k * step] times line k, of those from `begin` to `end`, at its first `width`
// numbers (and at some behind them). Lines are those of a lower triangle: zero from number k + 1
// on.
MVENET_INLINE void add_lines(const double* factor, std::ptrdiff_t step, const double* lines,
                             std::ptrdiff_t stride, std::ptrdiff_t begin, std::ptrdiff_t end,
                             std::ptrdiff_t width, double* out) {
    for (std::ptrdiff_t j = 0; j < width; j += line_tile) {
        Vec<double> total[line_vectors] = {};
        for (std::ptrdiff_t k = std::max(begin, j); k < end; ++k)
#pragma GCC unroll 4
            for (int v = 0; v < line_vectors; ++v)
                total[v] +=
                    factor[k * step] * load<double>(lines + k * stride + j + v * lanes<double>);
        for (int v = 0; v < line_vectors; ++v) store<double>(out + j + v * lanes<double>, total[v]);
    }
}

// What the covariances' Cholesky factor says of them: the inverse, line by line, and its product
// with t. LAPACK could do so, but SciPy calls it with Python's lock held, and folds would wait for
// each other.
class Inverse {
public:
    Inverse(const double* factor, const double* t, std::ptrdiff_t n, double* alpha)
        : n_(n), stride_((n + line_tile - 1) / line_tile * line_tile),
          lines_(arena_.array<double>(n * stride_)), line_(arena_.array<double>(stride_)) {
        std::fill_n(alpha, n, 0.0);
        for (std::ptrdiff_t i = 0; i < n; ++i) {  // of the factor itself, by substitution
            double* const own = lines_ + i * stride_;
            add_lines(factor + i * n, 1, lines_, stride_, 0, i, i, own);
            const double pivot = factor[i * n + i];
            double along = t[i] / pivot;
            for (std::ptrdiff_t j = 0; j < i; ++j) {
                own[j] /= -pivot;
                along += own[j] * t[j];
            }
            own[i] = 1.0 / pivot;
            for (std::ptrdiff_t j = 0; j <= i; ++j) alpha[j] += along * own[j];
        }
    }

    // Line i up to the diagonal; good until the next is asked for.
    const double* line(std::ptrdiff_t i) {
        add_lines(lines_ + i, stride_, lines_, stride_, i, n_, i + 1, line_);
        return line_;
    }

private:
    Arena arena_;
    const std::ptrdiff_t n_, stride_;
    double *const lines_, *const line_;
};

// What all pairs of different rows say about the scales, each counted as alpha alpha' - inverse has
// it: how the kernels grow with the logarithm of each column's length scale, then the three kernels
// themselves, then the linear kernel. Also alpha, inverse times t, and the inverse's diagonal.
static void pair_sums(const Pairs& pairs, const double* factor, const double* t, double* alpha,
                      double* diagonal, double* out) {
    using V = Vec<double>;
    const double* const a = pairs.amplitudes;
    const std::ptrdiff_t n = pairs.rows;
    const int d = pairs.columns;
    Arena arena;
    double* const along = arena.array<double>(std::ptrdiff_t(d) * lanes<double>);
    V kernels[3] = {}, line = {};
    Inverse inverse(factor, t, n, alpha);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double* const row = inverse.line(i);
        diagonal[i] = row[i];
        for (std::ptrdiff_t j = 0; j < i; j += lanes<double>) {
            const std::ptrdiff_t count = i - j;
            const Matern k(squares(pairs, i, j));
            V weight = alpha[i] * first(alpha + j, count) - first(row + j, count);
            kernels[0] += weight * k.rough;
            kernels[1] += weight * k.smoother;
            kernels[2] += weight * k.smooth;
            line += weight * first(pairs.linear + i * n + j, count);
            // -dk/dr / r; that of the first has no value at zero, and is not needed there
            weight *= a[0] * k.rough / at_least<double>(k.distance, 1e-9) + a[1] * k.rough +
                      a[2] * (1.0 / 3.0) * k.smoother;
            for (int c = 0; c < d; ++c) {
                const double* const column = pairs.points + c * pairs.stride;
                const V apart = load<double>(column + j) - column[i];
                double* const to = along + c * lanes<double>;
                store<double>(to, load<double>(to) + weight * apart * apart);
            }
        }
    }
    for (int c = 0; c < d; ++c) out[c] = sum<double>(load<double>(along + c * lanes<double>));
    for (int k = 0; k < 3; ++k) out[d + k] = sum<double>(kernels[k]);
    out[d + 3] = sum<double>(line);
}

}  // namespace mvenet::MVENET_ISA
