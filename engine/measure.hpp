// Weighted means and standard deviations of a table's columns.
//
// Columns are lanes here. No product is fused with a sum, so that all instruction sets measure the
// same: a model's standardisation does not depend on the processor.
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "simd.hpp"

#if defined(__clang__)
#define MVENET_UNFUSED
#define MVENET_UNFUSED_BODY _Pragma("clang fp contract(off)")
#else
#define MVENET_UNFUSED __attribute__((optimize("fp-contract=off")))
#define MVENET_UNFUSED_BODY
#endif

namespace mvenet::MVENET_ISA {

// Some rows of a table as doubles, y behind the columns, and the share of each in all weight.
class Sample {
public:
    static constexpr int most = 64;  // rows

    Sample(const Table& table, const std::int64_t* rows, std::int64_t n, Arena& arena)
        : table_(table), rows_(rows), n_(n), width_(padded<double>(table.columns + 1)),
          values_(arena.array<double>(std::ptrdiff_t(width_) * most)) {}

    int width() const { return width_; }
    int count() const { return count_; }
    const double* row(int i) const { return values_ + i * width_; }
    double share(int i) const { return share_[i]; }

    void read(std::int64_t start) {
        count_ = int(n_ - start < most ? n_ - start : most);
        const double each = 1 / double(n_);  // sums of shares do not overflow
        for (int i = 0; i < count_; ++i) {
            const std::int64_t row = rows_[start + i];
            share_[i] = table_.weight ? each * table_.weight[row] : each;
            values_[i * width_ + table_.columns] = table_.y[row];
        }
        if (table_.is_double)
            read_columns<double>(start);
        else
            read_columns<float>(start);
    }

private:
    template <class From> void read_columns(std::int64_t start) {
        const std::ptrdiff_t step = table_.column_stride;
        for (int i = 0; i < count_; ++i) {
            const From* __restrict from =
                static_cast<const From*>(table_.x) + rows_[start + i] * table_.row_stride;
            double* __restrict to = values_ + i * width_;
            if (step == 1)
                for (int j = 0; j < table_.columns; ++j) to[j] = double(from[j]);
            else
                for (int j = 0; j < table_.columns; ++j) to[j] = double(from[j * step]);
        }
    }

    const Table& table_;
    const std::int64_t* rows_;
    std::int64_t n_;
    int width_, count_ = 0;
    double* values_;
    double share_[most];
};

// Sums over the rows of a sample, for as many columns at once as a register holds.
MVENET_UNFUSED inline void add_values(const Sample& sample, const double* shift, double* total,
                                      double* low, double* high) {
    MVENET_UNFUSED_BODY
    for (int j = 0; j < sample.width(); j += lanes<double>) {
        Vec<double> sum = load<double>(total + j);
        Vec<double> least = load<double>(low + j), most = load<double>(high + j);
        const Vec<double> origin = load<double>(shift + j);
        for (int i = 0; i < sample.count(); ++i) {
            const Vec<double> v = load<double>(sample.row(i) + j);
            const Vec<double> part = sample.share(i) * (v - origin);
            sum = sum + part;
            least = v < least ? v : least;
            most = most < v ? v : most;
        }
        store<double>(total + j, sum);
        store<double>(low + j, least);
        store<double>(high + j, most);
    }
}

// Squares of fractions of the range neither overflow nor vanish.
MVENET_UNFUSED inline void add_squares(const Sample& sample, const double* mean,
                                       const double* fraction, double* squares) {
    MVENET_UNFUSED_BODY
    for (int j = 0; j < sample.width(); j += lanes<double>) {
        const Vec<double> centre = load<double>(mean + j), factor = load<double>(fraction + j);
        Vec<double> sum = load<double>(squares + j);
        for (int i = 0; i < sample.count(); ++i) {
            const Vec<double> v = load<double>(sample.row(i) + j);
            const Vec<double> part = (v - centre) * factor;
            const Vec<double> square = sample.share(i) * part * part;
            sum = sum + square;
        }
        store<double>(squares + j, sum);
    }
}

// A power of two that brings a range close to one: to multiply by it loses no digit.
inline double fraction_of(double range) {
    if (!__builtin_isfinite(range)) return 0;
    int exponent = 0;
    (void)__builtin_frexp(range, &exponent);
    return __builtin_ldexp(1, exponent > -1023 ? -exponent : 1023);
}

// Mean and population standard deviation of every column and of y over some rows; a constant is
// centred and otherwise left alone. Two passes over the rows, given up when `stop` is set.
inline void measure(const Table& table, const std::int64_t* rows, std::int64_t n,
                    const Scaling& scaling, const std::atomic<bool>& stop) {
    Arena arena;
    Sample sample(table, rows, n, arena);
    const int width = sample.width(), d = table.columns;
    double* const column = arena.array<double>(std::ptrdiff_t(6) * width);
    double *const shift = column, *const total = column + width, *const low = column + 2 * width,
                  *const high = column + 3 * width, *const mean = column + 4 * width,
                  *const squares = column + 5 * width;
    sample.read(0);
    double weights = 0;
    for (int j = 0; j < width; ++j) {
        shift[j] = sample.row(0)[j];
        low[j] = __builtin_inf();
        high[j] = -__builtin_inf();
    }
    for (std::int64_t at = 0; at < n; at += Sample::most) {
        if (stop.load(std::memory_order_relaxed)) return;
        sample.read(at);
        for (int i = 0; i < sample.count(); ++i) weights += sample.share(i);
        add_values(sample, shift, total, low, high);
    }
    double* const fraction = total;
    for (int j = 0; j < width; ++j) {
        mean[j] = shift[j] + total[j] / weights;
        fraction[j] = fraction_of(high[j] - low[j]);
    }
    for (std::int64_t at = 0; at < n; at += Sample::most) {
        if (stop.load(std::memory_order_relaxed)) return;
        sample.read(at);
        add_squares(sample, mean, fraction, squares);
    }
    for (int j = 0; j <= d; ++j) {
        const double deviation =
            low[j] == high[j] ? 0 : __builtin_sqrt(squares[j] / weights) / fraction[j];
        (j < d ? scaling.x_mean[j] : *scaling.y_mean) = mean[j];
        (j < d ? scaling.x_scale[j] : *scaling.y_scale) =
            deviation > 0 && __builtin_isfinite(deviation) ? deviation : 1;
    }
}

}  // namespace mvenet::MVENET_ISA
