// Forward and backward of one perceptron over a block of rows.
//
// Rows are lanes: the activations of a layer lie as [unit][row], so one register holds the same
// unit for several rows and a weight is broadcast to all of them. A block has at most `block_rows`
// rows. Weight gradients sum over rows, so they need the activations the other way round,
// [row][unit]: these are transposed in registers while the activation function is applied.
//
// Weights lie as [out][padded in]: the padding makes every row start at a register's width and
// stays zero, because the activations that it meets are zero.
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

constexpr int block_rows = 32;

// One register tile of a product: MR broadcast values times NV vectors, summed over k.
template <class T, int MR, int NV, class Start, class Finish>
MVENET_INLINE void tile(int k, const T* a, std::ptrdiff_t a_m, std::ptrdiff_t a_k, const T* b,
                        std::ptrdiff_t b_k, Start start, Finish finish) {
    Vec<T> sum[MR][NV];
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
        for (int n = 0; n < NV; ++n) sum[m][n] = start(m, n);
#pragma GCC unroll 2
    for (int i = 0; i < k; ++i) {
        Vec<T> column[NV];
#pragma GCC unroll 4
        for (int n = 0; n < NV; ++n) column[n] = load<T>(b + n * lanes<T>);
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m) {
            const Vec<T> value = splat<T>(a[m * a_m]);
#pragma GCC unroll 4
            for (int n = 0; n < NV; ++n) sum[m][n] += value * column[n];
        }
        a += a_k;
        b += b_k;
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
        for (int n = 0; n < NV; ++n) finish(m, n, sum[m][n]);
}

// As many rows of a tile as fill the registers with sums: 16 registers, 32 with AVX-512 and NEON.
constexpr int tile_rows(int vectors) {
    constexpr int sums = MVENET_REGISTERS == 32 ? 24 : 12;
    return sums / vectors < 12 ? sums / vectors : 12;
}

// Dispatch on the number of rows of a tile, which must be known when compiling.
template <class T, int NV, int MR, class Start, class Finish>
MVENET_INLINE void tile_of(int rows, int k, const T* a, std::ptrdiff_t a_m, std::ptrdiff_t a_k,
                           const T* b, std::ptrdiff_t b_k, Start start, Finish finish) {
    if constexpr (MR > 0) {
        if (rows == MR)
            tile<T, MR, NV>(k, a, a_m, a_k, b, b_k, start, finish);
        else
            tile_of<T, NV, MR - 1>(rows, k, a, a_m, a_k, b, b_k, start, finish);
    }
}

template <class T, int NV, class Start, class Finish>
MVENET_INLINE void strip(int rows, int k, const T* a, std::ptrdiff_t a_m, std::ptrdiff_t a_k,
                         const T* b, std::ptrdiff_t b_k, Start start, Finish finish) {
    constexpr int most = tile_rows(NV);
    int tiles = (rows + most - 1) / most;
    for (int m = 0; m < rows; --tiles) {
        const int take =
            (rows - m + tiles - 1) / tiles;  // even shares: a thin last tile would stall
        tile_of<T, NV, most>(
            take, k, a + m * a_m, a_m, a_k, b, b_k, [&](int i, int n) { return start(m + i, n); },
            [&](int i, int n, Vec<T> v) { finish(m + i, n, v); });
        m += take;
    }
}

// c[m][n] = start(m, n) + sum over i < k of a[m * a_m + i * a_k] * b[i * b_k + n], handed to
// finish(m, n, value), where n counts vectors.
template <class T, class Start, class Finish>
MVENET_INLINE void product(int rows, int vectors, int k, const T* a, std::ptrdiff_t a_m,
                           std::ptrdiff_t a_k, const T* b, std::ptrdiff_t b_k, Start start,
                           Finish finish) {
    for (int n = 0; n < vectors;) {
        const auto first = [&](int m, int j) { return start(m, n + j); };
        const auto last = [&](int m, int j, Vec<T> v) { finish(m, n + j, v); };
        const T* from = b + n * lanes<T>;
        const int left = vectors - n;
        if (left == 3 || left == 5) {
            strip<T, 3>(rows, k, a, a_m, a_k, from, b_k, first, last);
            n += 3;
        } else if (left >= 2) {
            strip<T, 2>(rows, k, a, a_m, a_k, from, b_k, first, last);
            n += 2;
        } else {
            strip<T, 1>(rows, k, a, a_m, a_k, from, b_k, first, last);
            n += 1;
        }
    }
}

// Value and derivative of the activation function.
template <class T, Activation A> MVENET_INLINE Vec<T> activate(Vec<T> z, Vec<T>& slope) {
    const Vec<T> zero{}, one = splat<T>(1);
    if constexpr (A == Activation::elu) {
        slope = exponential<T, true>(at_most<T>(z, T(0)));
        return at_least<T>(z, T(0)) + (slope - one);  // exp(0) is exactly 1
    } else if constexpr (A == Activation::relu) {
        slope = z > zero ? one : zero;
        return at_least<T>(z, T(0));
    } else if constexpr (A == Activation::tanh) {
        const Vec<T> value = one - T(2) / (exponential<T>(T(2) * z) + one);
        slope = one - value * value;
        return value;
    } else {
        static_assert(A == Activation::silu, "an activation without a formula");
        const Vec<T> gate = one / (exponential<T>(-z) + one);
        const Vec<T> value = z * gate;
        slope = gate + value * (one - gate);
        return value;
    }
}

template <class T> struct Layer {
    int in, out;
    int in_padded, out_padded;
    T *weight, *bias;                    // [out][in_padded], [out_padded]
    T *weight_gradient, *bias_gradient;  // the same
    T* value;                            // [out_padded][block_rows]
    T* slope;                            // the activation's derivative, likewise
    T* transposed;                       // value as [block_rows][out_padded]
};

// The input block in both orders.
template <class T> struct Block {
    const T* unit_major;  // [in_padded][block_rows]
    const T* row_major;   // [block_rows][in_padded]
    int rows;
    int vectors;  // of rows
};

template <class T> class Perceptron {
public:
    Perceptron(const Shape& shape, Activation activation, bool training, Arena& arena)
        : layers_(shape.layers), activation_(activation),
          layer_(static_cast<Layer<T>*>(arena.take(sizeof(Layer<T>) * std::size_t(shape.layers)))) {
        int widest = 1;
        for (int l = 0; l < layers_; ++l) {
            Layer<T>& layer = layer_[l];
            layer.in = shape.sizes[l];
            layer.out = shape.sizes[l + 1];
            layer.in_padded = padded<T>(layer.in);
            layer.out_padded = padded<T>(layer.out);
            parameters_ += std::ptrdiff_t(layer.out) * layer.in_padded + layer.out_padded;
            if (layer.out_padded > widest) widest = layer.out_padded;
        }
        parameter_ = arena.array<T>(parameters_);
        if (training) gradient_ = arena.array<T>(parameters_);
        std::ptrdiff_t at = 0;
        for (int l = 0; l < layers_; ++l) {
            Layer<T>& layer = layer_[l];
            const std::ptrdiff_t weights = std::ptrdiff_t(layer.out) * layer.in_padded;
            layer.weight = parameter_ + at;
            layer.bias = layer.weight + weights;
            layer.weight_gradient = gradient_ ? gradient_ + at : nullptr;
            layer.bias_gradient = gradient_ ? layer.weight_gradient + weights : nullptr;
            at += weights + layer.out_padded;
            const std::ptrdiff_t block = std::ptrdiff_t(layer.out_padded) * block_rows;
            layer.value = arena.array<T>(block);
            layer.slope = training && l + 1 < layers_ ? arena.array<T>(block) : nullptr;
            layer.transposed = training && l + 1 < layers_ ? arena.array<T>(block) : nullptr;
        }
        if (training)
            for (T*& d : delta_) d = arena.array<T>(std::ptrdiff_t(widest) * block_rows);
    }

    int layers() const { return layers_; }
    const Layer<T>& layer(int l) const { return layer_[l]; }
    std::ptrdiff_t parameters() const { return parameters_; }
    T* parameter() const { return parameter_; }
    T& output_bias() { return layer_[layers_ - 1].bias[0]; }
    const T* output() const { return layer_[layers_ - 1].value; }
    T* output_delta() const { return delta_[0]; }  // the caller writes d loss / d output here

    // `Training` keeps what backward needs; without it activations are bounded, so that no input,
    // however far from the training rows, can overflow.
    template <bool Training> void forward(const Block<T>& x) {
        const T* input = x.unit_major;
        for (int l = 0; l < layers_; ++l) {
            const Layer<T> layer = layer_[l];  // a copy, which no store can change
            product<T>(
                layer.out, x.vectors, layer.in, layer.weight, layer.in_padded, 1, input, block_rows,
                [&](int m, int) { return splat<T>(layer.bias[m]); },
                [&](int m, int n, Vec<T> v) {
                    store<T>(layer.value + m * block_rows + n * lanes<T>, v);
                });
            if (l + 1 < layers_) switch (activation_) {
#define MVENET_CASE(id, name) \
    case Activation::id: bend<Activation::id, Training>(layer, x.vectors); break;
                    MVENET_ACTIVATIONS(MVENET_CASE)
#undef MVENET_CASE
                }
            input = layer.value;
        }
    }

    // From output_delta() to the gradients: set by the first block of a batch, added to by the
    // rest.
    void backward(const Block<T>& x, bool first) {
        T* delta = delta_[0];
        T* next = delta_[1];
        for (int l = layers_ - 1; l >= 0; --l) {
            const Layer<T> layer = layer_[l];
            const T* input = l ? layer_[l - 1].transposed : x.row_major;
            T* gradient = layer.weight_gradient;
            product<T>(
                layer.out, layer.in_padded / lanes<T>, x.rows, delta, block_rows, 1, input,
                layer.in_padded,
                [&](int m, int n) {
                    return first ? Vec<T>{}
                                 : load<T>(gradient + m * layer.in_padded + n * lanes<T>);
                },
                [&](int m, int n, Vec<T> v) {
                    store<T>(gradient + m * layer.in_padded + n * lanes<T>, v);
                });
            sum_rows(delta, layer, x.vectors, first);
            if (l == 0) break;
            const T* slope = layer_[l - 1].slope;
            product<T>(
                layer.in, x.vectors, layer.out, layer.weight, 1, layer.in_padded, delta, block_rows,
                [&](int, int) { return Vec<T>{}; },
                [&](int m, int n, Vec<T> v) {
                    const int at = m * block_rows + n * lanes<T>;
                    store<T>(next + at, v * load<T>(slope + at));
                });
            T* swap = delta;
            delta = next;
            next = swap;
        }
    }

    // Parameters without the padding, as the caller keeps them; returns where they end.
    const T* unpack(const T* from) {
        for (int l = 0; l < layers_; ++l) {
            const Layer<T>& layer = layer_[l];
            for (int o = 0; o < layer.out; ++o)
                for (int i = 0; i < layer.in; ++i) layer.weight[o * layer.in_padded + i] = *from++;
            for (int o = 0; o < layer.out; ++o) layer.bias[o] = *from++;
        }
        return from;
    }
    T* pack(T* to) const {
        for (int l = 0; l < layers_; ++l) {
            const Layer<T>& layer = layer_[l];
            for (int o = 0; o < layer.out; ++o)
                for (int i = 0; i < layer.in; ++i) *to++ = layer.weight[o * layer.in_padded + i];
            for (int o = 0; o < layer.out; ++o) *to++ = layer.bias[o];
        }
        return to;
    }

private:
    // Apply the activation in place and transpose the result. A short block computes its unused
    // rows too: nothing reads them.
    template <Activation A, bool Training> void bend(Layer<T> layer, int vectors) {
        constexpr int w = lanes<T>;
        const int end = layer.out * block_rows;
        for (int at = 0; at < end; at += w) {
            Vec<T> slope;
            Vec<T> value = activate<T, A>(load<T>(layer.value + at), slope);
            if (!Training) value = at_most<T>(at_least<T>(value, T(-1e15)), T(1e15));
            store<T>(layer.value + at, value);
            if (Training) store<T>(layer.slope + at, slope);
        }
        if (!Training) return;
        for (int u = 0; u < layer.out; u += w)
            for (int n = 0; n < vectors; ++n) {
                Vec<T> square[w];
                const T* from = layer.value + u * block_rows + n * w;
                T* to = layer.transposed + n * w * layer.out_padded + u;
#pragma GCC unroll 16
                for (int j = 0; j < w; ++j) square[j] = load<T>(from + j * block_rows);
                transpose<T>(square);
#pragma GCC unroll 16
                for (int j = 0; j < w; ++j) store<T>(to + j * layer.out_padded, square[j]);
            }
    }

    // Bias gradients: sums of delta over the rows, for as many units at once as a register holds.
    // The padding collects leftovers of other layers there, which nothing ever reads.
    void sum_rows(const T* delta, Layer<T> layer, int vectors, bool first) {
        constexpr int w = lanes<T>;
        for (int u = 0; u < layer.out; u += w) {
            Vec<T> square[w];
#pragma GCC unroll 16
            for (int j = 0; j < w; ++j) {
                const T* row = delta + std::ptrdiff_t(u + j) * block_rows;
                square[j] = load<T>(row);
                for (int n = 1; n < vectors; ++n) square[j] += load<T>(row + n * w);
            }
            transpose<T>(square);
            Vec<T> total = first ? Vec<T>{} : load<T>(layer.bias_gradient + u);
#pragma GCC unroll 16
            for (int j = 0; j < w; ++j) total += square[j];
            store<T>(layer.bias_gradient + u, total);
        }
    }

    int layers_;
    Activation activation_;
    Layer<T>* layer_;
    std::ptrdiff_t parameters_ = 0;
    T* parameter_ = nullptr;
    T* gradient_ = nullptr;
    T* delta_[2] = {nullptr, nullptr};
};

}  // namespace mvenet::MVENET_ISA
