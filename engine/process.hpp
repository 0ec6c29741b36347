// The mean of a Gaussian process that has seen its points: for a row at the distances r from them,
// the sum of weight * p(r) * exp(-r), where p is a polynomial of degree two, and a linear function.
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

// Rows from `begin` to `end`, some side by side, so that a point is read once for all of them.
// Those that are missing at the end are the last one again: every row takes the same instructions.
static void predict_process(const Process& process, const Table& table, std::int64_t begin,
                            std::int64_t end, double* out) {
    using V = Vec<double>;
    constexpr int together = 4;
    const int d = table.columns;
    const double* const p = process.polynomial;
    Arena arena;
    double* const z = arena.array<double>(together * d);
    for (std::int64_t from = begin; from < end; from += together) {
        double line[together];
        for (int r = 0; r < together; ++r) {
            const std::int64_t row = from + r < end ? from + r : end - 1;
            line[r] = process.intercept;
            for (int c = 0; c < d; ++c) {
                const double value = (table.at(row, c) - process.center[c]) / process.scale[c];
                z[c * together + r] = value;
                line[r] += process.slope[c] * value;
            }
        }
        V total[together] = {};
        for (std::ptrdiff_t j = 0; j < process.stride; j += lanes<double>) {
            V square[together] = {};
            for (int c = 0; c < d; ++c) {
                const V point = load<double>(process.points + c * process.stride + j);
                for (int r = 0; r < together; ++r) {
                    const V apart = point - z[c * together + r];
                    square[r] += apart * apart;
                }
            }
            const V weight = load<double>(process.weights + j);
            for (int r = 0; r < together; ++r) {
                const V distance = square_root<double>(square[r]);
                const V factor = p[0] + distance * (p[1] + distance * p[2]);
                total[r] += weight * factor * exponential<double, true>(-distance);
            }
        }
        for (int r = 0; r < together && from + r < end; ++r)
            out[from + r] = line[r] + sum<double>(total[r]);
    }
}

}  // namespace mvenet::MVENET_ISA
