// Blocks of standardised rows, gathered from all over the data.
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "mlp.hpp"

namespace mvenet::MVENET_ISA {

// Places for a number of blocks, each with its rows in both orders, targets and weights.
template <class T> class Gatherer {
public:
    Gatherer(int inputs, int places, Arena& arena)
        : inputs_(inputs), width_(padded<T>(inputs)), stride_(row_stride<T>(inputs)),
          size_(std::ptrdiff_t(width_ + stride_ + 2) * block_rows),
          memory_(arena.array<T>(size_ * places)) {
        for (int i = 0; i < lanes<T>; ++i) {
            const bool inside = inputs_ - (width_ - lanes<T>) > i;
            tail_[i] = inside ? typename Number<T>::Int(-1) : 0;
        }
    }

    std::ptrdiff_t size() const { return size_; }  // numbers from one place to the next
    T* y(int place) const { return memory_ + place * size_ + size_ - 2 * block_rows; }
    T* weight(int place) const { return y(place) + block_rows; }  // zero past the last row

    // Rows order[start .. start + count), or those themselves if order is null.
    Block<T> operator()(int place, const Rows<T>& data, const std::int32_t* order,
                        std::int64_t start, int count) const {
        constexpr int w = lanes<T>;
        T* const rows = memory_ + place * size_;
        T* const units = rows + std::ptrdiff_t(stride_) * block_rows;
        T *const targets = y(place), *const weights = weight(place);
        const int vectors = (count + w - 1) / w;
        for (int r = 0; r < vectors * w; ++r) {
            T* to = rows + r * stride_;
            if (r >= count) {
                for (int i = 0; i < width_; i += w) store<T>(to + i, Vec<T>{});
                targets[r] = weights[r] = 0;
                continue;
            }
            const std::int64_t row = order ? order[start + r] : start + r;
            const T* from = data.x + row * inputs_;
            int i = 0;
            for (; i < width_ - w; i += w) store<T>(to + i, load<T>(from + i));
            if (width_) store<T>(to + i, (Vec<T>)((IntVec<T>)load<T>(from + i) & tail_));
            targets[r] = data.y ? data.y[row] : T(0);
            weights[r] = data.weight ? data.weight[row] : T(1);
        }
        for (int i = 0; i < width_; i += w)
            for (int n = 0; n < vectors; ++n) {
                Vec<T> square[w];
                for (int j = 0; j < w; ++j) square[j] = load<T>(rows + (n * w + j) * stride_ + i);
                transpose<T>(square);
                for (int j = 0; j < w; ++j)
                    store<T>(units + (i + j) * block_rows + n * w, square[j]);
            }
        return {units, rows, count, vectors};
    }

private:
    int inputs_, width_, stride_;
    std::ptrdiff_t size_;
    T* memory_;
    IntVec<T> tail_;
};

}  // namespace mvenet::MVENET_ISA
