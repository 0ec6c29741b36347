// The first layer of a network that is trained on columns cut into steps.
//
// Of a column's steps those below a row's value are 1, those above it are 0, and only the one that
// the value is in lies between. So no product over all of them is needed, neither forward nor for
// the gradients. Forward, the weights of a column's steps, added up from the first one on, are a
// flight of stairs: a row stands between two of them, and takes a part of either. Backward, a row
// leaves the same parts of its derivatives on the same two stairs; added up from the last one on,
// these are the gradients of the steps. For sixteen steps a column that is a seventh of the
// multiply-adds, or less. In prediction, where weights do not change, steps.hpp does the same.
//
// Weights lie as [input][unit], the steps behind the other inputs; derivatives as [row][unit].
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

// Where a row stands: for each column the number of the lower stair, and how far it is above it.
template <class T> struct Standing {
    const std::int32_t* stair;
    const T* part;
};

template <class T> class Staircase {
public:
    // `ends`: of each step what 0 is once it is standardised, and how far 1 is from it.
    Staircase(const Stairs& stairs, int inputs, int units, const T* ends, bool training,
              Arena& arena)
        : stairs_(stairs), others_(inputs - stairs.begin[stairs.columns]), width_(padded<T>(units)),
          ends_(ends) {
        const std::ptrdiff_t size =
            std::ptrdiff_t(stairs.begin[stairs.columns] + stairs.columns) * width_;
        height_ = arena.array<T>(size);
        base_ = arena.array<T>(std::ptrdiff_t(stairs.columns) * width_);
        if (training) left_ = arena.array<T>(size);
    }

    int others() const { return others_; }
    int columns() const { return stairs_.columns; }
    int width() const { return width_; }
    // The line of the weights of an input.
    int line(int input) const {
        const int steps = stairs_.begin[stairs_.columns], step = input - stairs_.first;
        return step < 0 ? input : step < steps ? others_ + step : input - steps;
    }
    int first_line(int column) const { return others_ + stairs_.begin[column]; }

    // Add up the weights of columns [from, to), after they have changed.
    void build(const T* weight, int from, int to) {
        constexpr int w = lanes<T>;
        for (int c = from; c < to; ++c) {
            const int first = stairs_.begin[c], count = stairs_.begin[c + 1] - first;
            const T *const line = weight + std::ptrdiff_t(first_line(c)) * width_, *const end =
                                                                                       ends_ +
                                                                                       2 * first;
            T* const height = heights(height_, c);
            for (int u = 0; u < width_; u += w) {
                Vec<T> base{}, sum{};
                for (int s = 0; s < count; ++s) {
                    const Vec<T> its = load<T>(line + s * width_ + u);
                    base += end[2 * s] * its;
                    sum += end[2 * s + 1] * its;
                    store<T>(height + (s + 1) * width_ + u, sum);
                }
                store<T>(base_ + c * width_ + u, base);
            }
        }
    }

    // What enters the activations of `count` rows, `stride` numbers apart.
    void forward(const T* weight, const T* bias, const T* x, std::ptrdiff_t x_stride,
                 const Standing<T>* standing, int count, T* to, std::ptrdiff_t stride) const {
        in_strips([&](auto n, int u) {
            Vec<T> start[n];
            each<n>([&](int j) { start[j] = load<T>(bias + u + j * lanes<T>); });
            for (int c = 0; c < stairs_.columns; ++c)
                each<n>([&](int j) { start[j] += load<T>(base_ + c * width_ + u + j * lanes<T>); });
            for (int r = 0; r < count; ++r)
                sum<n>(weight + u, start, x + r * x_stride, standing[r], u, to + r * stride + u);
        });
    }

    // Leave the derivatives of `count` rows on the stairs of columns [from, to).
    void leave(const T* derivative, std::ptrdiff_t stride, const Standing<T>* standing, int count,
               int from, int to) {
        constexpr int w = lanes<T>;
        in_strips([&](auto n, int u) {
            for (int r = 0; r < count; ++r) {
                Vec<T> d[n];
                each<n>([&](int j) { d[j] = load<T>(derivative + r * stride + u + j * w); });
                for (int c = from; c < to; ++c) {
                    const Vec<T> part = splat<T>(standing[r].part[c]);
                    T* const at = left_ + std::ptrdiff_t(standing[r].stair[c]) * width_ + u;
                    each<n>([&](int j) {
                        T *const low = at + j * w, *const high = low + width_;
                        const Vec<T> upper = part * d[j];
                        store<T>(low, load<T>(low) + (d[j] - upper));
                        store<T>(high, load<T>(high) + upper);
                    });
                }
            }
        });
    }

    // From what was left to the gradients of the weights of columns [from, to); the stairs are
    // clear again.
    void collect(T* gradient, int from, int to) {
        constexpr int w = lanes<T>;
        for (int c = from; c < to; ++c) {
            const int first = stairs_.begin[c], count = stairs_.begin[c + 1] - first;
            const T* const end = ends_ + 2 * first;
            T *const line = gradient + std::ptrdiff_t(first_line(c)) * width_, *const left =
                                                                                   heights(left_,
                                                                                           c);
            for (int u = 0; u < width_; u += w) {
                Vec<T> all = load<T>(left + u), above{};
                store<T>(left + u, Vec<T>{});
                for (int s = 0; s < count; ++s) all += load<T>(left + (s + 1) * width_ + u);
                for (int s = count - 1; s >= 0; --s) {
                    T *const its = left + (s + 1) * width_ + u, *const at = line + s * width_ + u;
                    above += load<T>(its);
                    store<T>(its, Vec<T>{});
                    store<T>(at, end[2 * s] * all + end[2 * s + 1] * above);
                }
            }
        }
    }

private:
    T* heights(T* of, int column) const {
        return of + std::ptrdiff_t(stairs_.begin[column] + column) * width_;
    }

    // what(number of vectors, first unit) for all units, as many at once as are kept in registers.
    template <class What> void in_strips(What what) const {
        constexpr int w = lanes<T>;
        for (int u = 0; u < width_; u += 4 * w) switch ((width_ - u) / w) {
                case 1: what(std::integral_constant<int, 1>{}, u); break;
                case 2: what(std::integral_constant<int, 2>{}, u); break;
                case 3: what(std::integral_constant<int, 3>{}, u); break;
                default: what(std::integral_constant<int, 4>{}, u);
            }
    }

    // One row's sums for N vectors of units: two chains each, which need not wait for one another.
    template <int N>
    MVENET_INLINE void sum(const T* weight, const Vec<T>* start, const T* x,
                           const Standing<T>& standing, int u, T* to) const {
        constexpr int w = lanes<T>;
        Vec<T> low[N], high[N];
        each<N>([&](int j) { low[j] = start[j], high[j] = Vec<T>{}; });
        for (int i = 0; i < others_; ++i, weight += width_) {
            const Vec<T> value = splat<T>(x[i]);
            each<N>([&](int j) { high[j] += value * load<T>(weight + j * w); });
        }
        for (int c = 0; c < stairs_.columns; ++c) {
            const Vec<T> part = splat<T>(standing.part[c]);
            const T* const at = height_ + std::ptrdiff_t(standing.stair[c]) * width_ + u;
            each<N>([&](int j) {
                const Vec<T> stair = load<T>(at + j * w);
                low[j] += stair;
                high[j] += part * (load<T>(at + width_ + j * w) - stair);
            });
        }
        each<N>([&](int j) { store<T>(to + j * w, low[j] + high[j]); });
    }

    const Stairs& stairs_;
    int others_, width_;
    const T* ends_;
    T* height_;          // of each column its stairs, one more than steps: [stairs][width]
    T* base_;            // of each column what its lowest stair, where all steps are 0, amounts to
    T* left_ = nullptr;  // what rows left there
};

}  // namespace mvenet::MVENET_ISA
