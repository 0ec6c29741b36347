// Blocks of standardised rows, gathered from all over the data.
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "mlp.hpp"
#include "standardise.hpp"

namespace mvenet::MVENET_ISA {

// Places for a number of blocks, each with its rows in both orders, targets and weights; with
// stairs also where each row stands, and of its inputs only the others.
template <class T> class Gatherer {
public:
    Gatherer(int inputs, int places, Arena& arena, const Stairs* stairs = nullptr)
        : inputs_(stairs ? inputs - stairs->begin[stairs->columns] : inputs), stairs_(stairs),
          width_(padded<T>(inputs_)), stride_(row_stride<T>(inputs_)),
          scratch_(std::ptrdiff_t(width_ + stride_ + 2) * block_rows),
          size_(scratch_ + padded<T>(inputs_ * block_rows) + lanes<T>),
          memory_(arena.array<T>(size_ * places)),
          standing_(stairs ? arena.array<Standing<T>>(block_rows * places) : nullptr) {
        for (int i = 0; i < lanes<T>; ++i) {
            const bool inside = inputs_ - (width_ - lanes<T>) > i;
            tail_[i] = inside ? typename Number<T>::Int(-1) : 0;
        }
    }

    std::ptrdiff_t size() const { return size_; }  // numbers from one place to the next
    T* y(int place) const { return memory_ + place * size_ + scratch_ - 2 * block_rows; }
    T* weight(int place) const { return y(place) + block_rows; }  // zero past the last row

    // Rows order[start .. start + count), or those themselves if order is null.
    Block<T> operator()(int place, const Rows<T>& data, const std::int32_t* order,
                        std::int64_t start, int count) const {
        constexpr int w = lanes<T>;
        T* const rows = memory_ + place * size_;
        T* const units = rows + std::ptrdiff_t(stride_) * block_rows;
        T *const targets = y(place), *const weights = weight(place);
        const int vectors = (count + w - 1) / w;
        std::int64_t row[block_rows];
        for (int r = 0; r < count; ++r) row[r] = order ? order[start + r] : start + r;
        if (data.table) look_up(data, row, count, place);
        for (int r = 0; r < vectors * w; ++r) {
            T* to = rows + r * stride_;
            if (r >= count) {
                for (int i = 0; i < width_; i += w) store<T>(to + i, Vec<T>{});
                targets[r] = weights[r] = 0;
                continue;
            }
            const T* from =
                data.table ? scratch(place) + r * inputs_ : data.x + row[r] * data.stride;
            int i = 0;
            for (; i < width_ - w; i += w) store<T>(to + i, load<T>(from + i));
            if (width_) store<T>(to + i, (Vec<T>)((IntVec<T>)load<T>(from + i) & tail_));
            if (data.table) continue;
            targets[r] = data.y ? data.y[row[r] * data.stride] : T(0);
            weights[r] = data.weight ? data.weight[row[r] * data.stride] : T(1);
        }
        for (int i = 0; i < width_; i += w)
            for (int n = 0; n < vectors; ++n) {
                Vec<T> square[w];
                for (int j = 0; j < w; ++j) square[j] = load<T>(rows + (n * w + j) * stride_ + i);
                transpose<T>(square);
                for (int j = 0; j < w; ++j)
                    store<T>(units + (i + j) * block_rows + n * w, square[j]);
            }
        if (!stairs_) return {units, rows, count, vectors};
        Standing<T>* const standing = standing_ + place * block_rows;
        for (int r = 0; r < count; ++r)
            standing[r] = {data.stair + row[r] * stairs_->columns,
                           data.x + row[r] * data.stride + inputs_};
        return {units, rows, count, vectors, standing};
    }

    // Tell the cache which rows come next.
    void announce(const Rows<T>& data, const std::int32_t* order, std::int64_t from,
                  std::int64_t to) const {
        if (to > data.n) to = data.n;
        if (!data.table) {
            const std::size_t bytes = sizeof(T) * std::size_t(data.stride);
            for (std::int64_t i = from; i < to; ++i) fetch(data.x + order[i] * data.stride, bytes);
            if (!stairs_) return;
            const std::size_t numbers = sizeof(std::int32_t) * std::size_t(stairs_->columns);
            for (std::int64_t i = from; i < to; ++i)
                fetch(data.stair + order[i] * stairs_->columns, numbers);
            return;
        }
        const Table& table = *data.table;
        for (std::int64_t i = from; i < to; ++i) {
            if (data.index && i + block_rows < data.n) prefetch(data.index + order[i + block_rows]);
            const std::int64_t row = data.index ? data.index[order[i]] : order[i];
            fetch(row_of(table, row), number_of(table) * std::size_t(inputs_));
            prefetch(table.y + row);
        }
    }

private:
    static std::size_t number_of(const Table& table) {
        return table.is_double ? sizeof(double) : sizeof(float);
    }
    static const char* row_of(const Table& table, std::int64_t row) {
        return static_cast<const char*>(table.x) +
               row * table.row_stride * std::ptrdiff_t(number_of(table));
    }

    // All cache lines of a row, the one that it ends in as well: it need not begin with a line.
    static void fetch(const void* row, std::size_t bytes) {
        const char* const at = static_cast<const char*>(row);
        for (std::size_t byte = 0; byte < bytes; byte += 64) prefetch(at + byte);
        if (bytes) prefetch(at + bytes - 1);
    }

    // Read a number of each line. Where pages are small for the processor a prefetch gets nothing
    // done; the rows of a block, read one after the other with no work between, wait for memory
    // together.
    void touch(const char* row, std::size_t number) const {
        const std::size_t bytes = number * std::size_t(inputs_);
        for (std::size_t byte = 0; byte < bytes; byte += 64)
            (void)*static_cast<const volatile char*>(row + byte);
        if (bytes) (void)*static_cast<const volatile char*>(row + bytes - 1);
    }

    // Rows of the table, standardised into the scratch of a place; targets and weights with them.
    void look_up(const Rows<T>& data, std::int64_t* row, int count, int place) const {
        const Table& table = *data.table;
        const Scaling& scaling = *data.scaling;
        for (int r = 0; r < count; ++r)
            if (data.index) row[r] = data.index[row[r]];
        for (int r = 0; r < count; ++r) touch(row_of(table, row[r]), number_of(table));
        for (int r = 0; r < count; ++r) {
            y(place)[r] = T(clamped((table.y[row[r]] - *scaling.y_mean) / *scaling.y_scale));
            weight(place)[r] = table.weight ? T(table.weight[row[r]] / data.mean_weight) : T(1);
        }
        standardise<T>(table, scaling, row, 0, count, scratch(place), inputs_);
    }
    T* scratch(int place) const { return memory_ + place * size_ + scratch_; }

    int inputs_;
    const Stairs* stairs_;
    int width_, stride_;
    std::ptrdiff_t scratch_, size_;
    T* memory_;
    Standing<T>* standing_;
    IntVec<T> tail_;
};

}  // namespace mvenet::MVENET_ISA
