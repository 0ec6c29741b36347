// Forward and backward of one perceptron over blocks of rows.
//
// Rows are lanes: the activations of a layer lie as [unit][row], so one register holds the same
// unit for several rows and a weight is broadcast to all of them. A block has at most `block_rows`
// rows. Weight gradients sum over rows, so they need the activations the other way round,
// [row][unit]: these are transposed in registers after the activation function is applied.
//
// What belongs to the network (weights, gradients) and what belongs to a block (activations) are
// apart: several blocks, each with a tape of its own, can be worked on at once.
//
// In training, the first layer may read steps (stairs.hpp): its weights then lie as [input][unit].
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "product.hpp"
#include "simd.hpp"
#include "stairs.hpp"

namespace mvenet::MVENET_ISA {

constexpr int block_rows = 32;

// Values, in place, and derivatives of the activation function.
template <class T, Activation A, int Count> MVENET_INLINE void activate(Vec<T>* z, Vec<T>* slope) {
    const Vec<T> zero{}, one = splat<T>(1);
    if constexpr (A == Activation::elu) {
        each<Count>([&](int j) { slope[j] = at_most<T>(z[j], T(0)); });
        exponentials<T, Count, true>(slope);
        each<Count>([&](int j) {
            z[j] = at_least<T>(z[j], T(0)) + (slope[j] - one);  // exp(0) is exactly 1
        });
    } else if constexpr (A == Activation::relu) {
        each<Count>([&](int j) {
            slope[j] = z[j] > zero ? one : zero;
            z[j] = at_least<T>(z[j], T(0));
        });
    } else if constexpr (A == Activation::tanh) {
        each<Count>([&](int j) { z[j] = T(2) * z[j]; });
        exponentials<T, Count>(z);
        each<Count>([&](int j) {
            z[j] = one - T(2) / (z[j] + one);
            slope[j] = one - z[j] * z[j];
        });
    } else {
        static_assert(A == Activation::silu, "an activation without a formula");
        Vec<T> gate[Count];
        each<Count>([&](int j) { gate[j] = -z[j]; });
        exponentials<T, Count>(gate);
        each<Count>([&](int j) { gate[j] = one / (gate[j] + one); });
        each<Count>([&](int j) {
            z[j] = z[j] * gate[j];
            slope[j] = gate[j] + z[j] * (one - gate[j]);
        });
    }
}

// In prediction activations are bounded, so that no input, however far from the training rows, can
// overflow.
template <class T> MVENET_INLINE Vec<T> bounded_value(Vec<T> value) {
    return at_most<T>(at_least<T>(value, T(-1e15)), T(1e15));
}

// Rows that lie a multiple of 512 bytes apart compete for the same few places in the first-level
// cache: such are spread.
template <class T> constexpr int spread(int stride) {
    return stride > 0 && stride * int(sizeof(T)) % 512 == 0 ? stride + 64 / int(sizeof(T)) : stride;
}
// Numbers from one row of n to the next: a whole number of registers, so that rows can be loaded
// past their end. Weights are only written, and never beyond the half register that a row ends in.
template <class T> constexpr int row_stride(int n) {
    return spread<T>(padded<T>(n));
}
template <class T> constexpr int weight_stride(int n) {
    return spread<T>(half_padded<T>(n));
}

template <class T> struct Layer {
    int in, out;
    std::ptrdiff_t stride;               // of the weights: [out][stride]
    T *weight, *bias;                    // [out_padded] biases
    T *weight_gradient, *bias_gradient;  // the same
    // Where in a tape: value [out_padded][block_rows], later the derivative of the loss by what
    // entered the activation; slope of the activation, likewise; value as [block_rows][of the next
    // layer].
    std::ptrdiff_t value, slope, transposed;
    // Of the output layer above another: what a block adds to the gradients of its weights and, a
    // vector further, of its bias.
    std::ptrdiff_t share;
    // Of a first layer with stairs: what enters its activations, and later the derivative of the
    // loss by that, as [block_rows][out].
    std::ptrdiff_t across;
};

// The input block in both orders.
template <class T> struct Block {
    const T* unit_major;  // [in_padded][block_rows]
    const T* row_major;   // [block_rows][row_stride]
    int rows;
    int vectors;                            // of rows
    const Standing<T>* standing = nullptr;  // of each row, with stairs
};

template <class T> class Perceptron {
public:
    // `training`: with gradients, and tapes for backward. Otherwise only as in prediction.
    // `stairs`: of a network that reads steps, with their ends; or null.
    Perceptron(const Shape& shape, Activation activation, bool training, Arena& arena,
               const Stairs* stairs = nullptr, const T* ends = nullptr)
        : layers_(shape.layers), activation_(activation), training_(training),
          layer_(static_cast<Layer<T>*>(arena.take(sizeof(Layer<T>) * std::size_t(shape.layers)))) {
        for (int l = 0; l < layers_; ++l) {
            Layer<T>& layer = layer_[l];
            layer.in = shape.sizes[l];
            layer.out = shape.sizes[l + 1];
            layer.stride = weight_stride<T>(layer.in);
            if (l == 0 && stairs && layer.in > 0) {
                layer.stride = padded<T>(layer.out);
                staircase_ = new (arena.take(sizeof(Staircase<T>)))
                    Staircase<T>(*stairs, layer.in, layer.out, ends, training, arena);
                layer.across = tape_;
                tape_ += std::ptrdiff_t(row_stride<T>(layer.out)) * block_rows;
            }
            parameters_ += room(l) + padded<T>(layer.out);
            const std::ptrdiff_t block = std::ptrdiff_t(padded<T>(layer.out)) * block_rows;
            layer.value = tape_;
            tape_ += block;
            if (!training) continue;
            if (l + 1 == layers_) {
                layer.share = tape_;
                tape_ += padded<T>(layer.in) + lanes<T>;
                continue;
            }
            layer.slope = tape_;
            tape_ += block;
            if (l + 2 == layers_) continue;  // the output layer reads it as it is
            layer.transposed = tape_;
            tape_ += std::ptrdiff_t(row_stride<T>(layer.out)) * block_rows;
        }
    }

    // Room for weights and, in training, gradients.
    void allocate(Arena& arena) {
        parameter_ = arena.array<T>(parameters_);
        if (training_) gradient_ = arena.array<T>(parameters_);
        std::ptrdiff_t at = 0;
        for (int l = 0; l < layers_; ++l) {
            Layer<T>& layer = layer_[l];
            const std::ptrdiff_t weights = room(l);
            layer.weight = parameter_ + at;
            layer.bias = layer.weight + weights;
            layer.weight_gradient = gradient_ ? gradient_ + at : nullptr;
            layer.bias_gradient = gradient_ ? layer.weight_gradient + weights : nullptr;
            at += weights + padded<T>(layer.out);
        }
    }

    // Or use the caller's parameters where they are, which forward does not change; returns where
    // they end.
    const T* borrow(const T* parameters) {
        T* at = const_cast<T*>(parameters);
        for (int l = 0; l < layers_; ++l) {
            Layer<T>& layer = layer_[l];
            layer.stride = layer.in;
            layer.weight = at;
            layer.bias = at + layer.out * layer.stride;
            at = layer.bias + layer.out;
        }
        return at;
    }

    int layers() const { return layers_; }
    const Layer<T>& layer(int l) const { return layer_[l]; }
    std::ptrdiff_t parameters() const { return parameters_; }
    std::ptrdiff_t tape() const { return tape_; }  // numbers that a block needs, zero at first
    T* parameter() const { return parameter_; }
    T& weight(int l, int o, int i) const {
        const Layer<T>& layer = layer_[l];
        return layer.weight[l == 0 && staircase_ ? staircase_->line(i) * layer.stride + o
                                                 : o * layer.stride + i];
    }
    T& output_bias() { return layer_[layers_ - 1].bias[0]; }
    // A block's outputs; before backward the caller writes d loss / d output in their place.
    T* output(T* tape) const { return tape + layer_[layers_ - 1].value; }

    // `Training` keeps what backward needs; without it activations are bounded. `begun`: the tape
    // holds what the first layer's activations are given.
    template <bool Training> void forward(const Block<T>& x, T* tape, bool begun = false) const {
        const T* input = x.unit_major;
        for (int l = 0; l < layers_; ++l) {
            const Layer<T>& layer = layer_[l];
            if (l == 0 && staircase_) {
                climb(x, tape);
            } else if (l > 0 || !begun) {
                Product<T, Known{.a_k = 1, .b_k = block_rows, .c_m = block_rows}> p;
                p.rows = layer.out, p.vectors = x.vectors, p.k = layer.in;
                p.a = layer.weight, p.a_m = layer.stride;
                p.b = input, p.c = tape + layer.value;
                p.bias = layer.bias;
                multiply(p);
            }
            if (l + 1 < layers_) switch (activation_) {
#define MVENET_CASE(id, name) \
    case Activation::id: apply<Activation::id, Training>(layer, x.vectors, tape); break;
                    MVENET_ACTIVATIONS(MVENET_CASE)
#undef MVENET_CASE
                }
            input = tape + layer.value;
        }
    }

    // From d loss / d output to the derivatives by what entered each activation, kept in the tape.
    void backward(const Block<T>& x, T* tape) const {
        if (layers_ > 1) backward_output(x.vectors, tape);
        for (int l = layers_ - 2; l > 0; --l) {
            const Layer<T>& layer = layer_[l];
            Product<T, Known{.a_m = 1, .b_k = block_rows, .c_m = block_rows}> p;
            p.rows = layer.in, p.vectors = x.vectors, p.k = layer.out;
            p.a = layer.weight, p.a_k = layer.stride;
            p.b = tape + layer.value, p.c = tape + layer_[l - 1].value;
            p.slope = tape + layer_[l - 1].slope;
            multiply(p);
        }
        if (staircase_)
            transpose_block(tape + layer_[0].value, block_rows, tape + layer_[0].across,
                            row_stride<T>(layer_[0].out), x.vectors * lanes<T>, layer_[0].out);
    }

    // The gradients of a layer are computed in portions, of which some are a part of the work: a
    // unit each; with stairs first that of all other inputs, then one for each column.
    int portions(int l) const {
        return l == 0 && staircase_ ? 1 + staircase_->columns() : layer_[l].out;
    }
    bool has_stairs(int l) const { return l == 0 && staircase_; }
    // Where the weights of a portion begin, and those before it end.
    std::ptrdiff_t begin(int l, int portion) const {
        if (!has_stairs(l)) return portion * layer_[l].stride;
        return portion ? staircase_->first_line(portion - 1) * layer_[0].stride : 0;
    }
    // The gradients of portions of a layer with stairs, once all blocks have left theirs there.
    void collect(int from, int to) const {
        staircase_->collect(layer_[0].weight_gradient, from ? from - 1 : 0, to - 1);
    }
    // Add up the weights of portions that have changed.
    void build(int from, int to) const {
        staircase_->build(layer_[0].weight, from ? from - 1 : 0, to - 1);
    }

    // Gradients of the weights of portions [from, to) of a layer over blocks whose inputs lie
    // `input_size` apart; with from = 0 those of all its biases too. `add`: to what is there.
    void gradients(int l, int from, int to, const Block<T>* x, std::ptrdiff_t input_size, T* tapes,
                   int blocks, bool add) const {
        if (l > 0 && l + 1 == layers_) return add_shares(tapes, blocks, add);
        const Layer<T>& layer = layer_[l];
        if (has_stairs(l)) return descend(from, to, x, input_size, tapes, blocks, add);
        Product<T, Known{.a_m = block_rows, .a_k = 1}> p;
        p.rows = to - from, p.vectors = padded<T>(layer.in) / lanes<T>;
        p.k = blocks > 1 ? block_rows : x[0].rows;
        p.pieces = blocks, p.last_k = x[blocks - 1].rows;
        p.a = tapes + layer.value + std::ptrdiff_t(from) * block_rows;
        p.a_piece = tape_;
        p.b = l ? tapes + layer_[l - 1].transposed : x[0].row_major;
        p.b_k = row_stride<T>(layer.in), p.b_piece = l ? tape_ : input_size;
        p.c = layer.weight_gradient + from * layer.stride, p.c_m = layer.stride;
        p.half = padded<T>(layer.in) > half_padded<T>(layer.in);
        p.add = add, p.columns_first = true;
        multiply(p);
        if (from > 0) return;
        for (int b = 0; b < blocks; ++b)
            sum_rows(layer, tapes + b * tape_ + layer.value, x[b].vectors, add || b > 0);
    }

    // Parameters without the padding, as the caller keeps them; returns where they end.
    const T* unpack(const T* from) {
        for (int l = 0; l < layers_; ++l) {
            const Layer<T>& layer = layer_[l];
            for (int o = 0; o < layer.out; ++o)
                for (int i = 0; i < layer.in; ++i) weight(l, o, i) = *from++;
            for (int o = 0; o < layer.out; ++o) layer.bias[o] = *from++;
        }
        return from;
    }
    T* pack(T* to) const {
        for (int l = 0; l < layers_; ++l) {
            const Layer<T>& layer = layer_[l];
            for (int o = 0; o < layer.out; ++o)
                for (int i = 0; i < layer.in; ++i) *to++ = weight(l, o, i);
            for (int o = 0; o < layer.out; ++o) *to++ = layer.bias[o];
        }
        return to;
    }

private:
    // Numbers that the weights of a layer take.
    std::ptrdiff_t room(int l) const {
        const Layer<T>& layer = layer_[l];
        return padded<T>((has_stairs(l) ? layer.in : layer.out) * layer.stride);
    }

    // What enters the first activations, with stairs; of rows past the last one nothing.
    void climb(const Block<T>& x, T* tape) const {
        const Layer<T>& layer = layer_[0];
        const int stride = row_stride<T>(layer.out), all = x.vectors * lanes<T>;
        T* const across = tape + layer.across;
        staircase_->forward(layer.weight, layer.bias, x.row_major,
                            row_stride<T>(staircase_->others()), x.standing, x.rows, across,
                            stride);
        for (int r = x.rows; r < all; ++r)
            std::memset(across + r * stride, 0, sizeof(T) * std::size_t(padded<T>(layer.out)));
        transpose_block(across, stride, tape + layer.value, block_rows, layer.out, all);
    }

    // The gradients of a first layer with stairs.
    void descend(int from, int to, const Block<T>* x, std::ptrdiff_t input_size, T* tapes,
                 int blocks, bool add) const {
        const Layer<T>& layer = layer_[0];
        const int stride = row_stride<T>(layer.out);
        if (from == 0) {
            Product<T, Known{.a_m = block_rows, .a_k = 1}> p;
            p.rows = staircase_->others(), p.vectors = padded<T>(layer.out) / lanes<T>;
            p.k = blocks > 1 ? block_rows : x[0].rows;
            p.pieces = blocks, p.last_k = x[blocks - 1].rows;
            p.a = x[0].unit_major, p.a_piece = input_size;
            p.b = tapes + layer.across, p.b_k = stride, p.b_piece = tape_;
            p.c = layer.weight_gradient, p.c_m = layer.stride;
            p.add = add, p.columns_first = true;
            if (p.rows) multiply(p);
            for (int b = 0; b < blocks; ++b)
                sum_rows(layer, tapes + b * tape_ + layer.value, x[b].vectors, add || b > 0);
            from = 1;
        }
        for (int b = 0; b < blocks; ++b)
            staircase_->leave(tapes + b * tape_ + layer.across, stride, x[b].standing, x[b].rows,
                              from - 1, to - 1);
    }

    // From [n][m], of which there are whole vectors, to [m][n]: some rows more than m are written.
    static void transpose_block(const T* from, std::ptrdiff_t from_stride, T* to,
                                std::ptrdiff_t to_stride, int m, int n) {
        constexpr int w = lanes<T>;
        for (int i = 0; i < n; i += w)
            for (int j = 0; j < m; j += w) {
                Vec<T> square[w];
#pragma GCC unroll 16
                for (int k = 0; k < w; ++k) square[k] = load<T>(from + (i + k) * from_stride + j);
                transpose<T>(square);
#pragma GCC unroll 16
                for (int k = 0; k < w; ++k) store<T>(to + (j + k) * to_stride + i, square[k]);
            }
    }

    // The output layer has one unit: its derivatives are no products of matrices, but a number for
    // each row times a line for each unit below it. What it adds to its gradients is left in the
    // tape, since the activations are overwritten.
    void backward_output(int vectors, T* tape) const {
        constexpr int w = lanes<T>;
        const Layer<T>& layer = layer_[layers_ - 1];
        const T* const delta = tape + layer.value;
        T* const share = tape + layer.share;
        for (int u = 0; u < layer.in; u += w) {
            if (has_halves && layer.in - u <= half_lanes<T>)
                backward_units<half_lanes<T>>(u, vectors, tape);
            else
                backward_units<w>(u, vectors, tape);
        }
        Vec<T> total = load<T>(delta);
        for (int n = 1; n < vectors; ++n) total += load<T>(delta + n * w);
        store<T>(share + padded<T>(layer.in), splat<T>(sum<T>(total)));
    }
    template <int Count> void backward_units(int u, int vectors, T* tape) const {
        constexpr int w = lanes<T>;
        const Layer<T>&layer = layer_[layers_ - 1], &below = layer_[layers_ - 2];
        const T* const delta = tape + layer.value;
        T* const value = tape + below.value + std::ptrdiff_t(u) * block_rows;
        const T* const slope = tape + below.slope + std::ptrdiff_t(u) * block_rows;
        Vec<T> total[Count];
        each<Count>([&](int j) {
            total[j] = Vec<T>{};
            for (int at = 0; at < vectors * w; at += w) {
                const Vec<T> d = load<T>(delta + at);
                T* const its = value + j * block_rows + at;
                total[j] += d * load<T>(its);
                store<T>(its, layer.weight[u + j] * d * load<T>(slope + j * block_rows + at));
            }
        });
        store_sums<Count>(tape + layer.share + u, total, false);
    }

    // The output layer's gradients.
    void add_shares(const T* tapes, int blocks, bool add) const {
        constexpr int w = lanes<T>;
        const Layer<T>& layer = layer_[layers_ - 1];
        const auto added = [&](T* to, std::ptrdiff_t at) {
            Vec<T> total = add ? load<T>(to) : Vec<T>{};
            for (int b = 0; b < blocks; ++b) total += load<T>(tapes + b * tape_ + layer.share + at);
            store<T>(to, total);
        };
        for (int u = 0; u < layer.in; u += w) added(layer.weight_gradient + u, u);
        added(layer.bias_gradient, padded<T>(layer.in));
    }

    // Apply the activation in place and transpose the result. A short block computes the unused
    // rows of its last vector too: nothing reads them.
    template <Activation A, bool Training>
    void apply(const Layer<T>& layer, int vectors, T* tape) const {
        constexpr int w = lanes<T>;
        if (vectors * w == block_rows) {  // then all units are one long row
            for (int at = 0; at < layer.out * block_rows; at += 4 * w)
                activate_some<A, Training, 4>(layer, tape, at);
        } else {
            for (int u = 0; u < layer.out; ++u)
                for (int n = 0; n < vectors; ++n)
                    activate_some<A, Training, 1>(layer, tape, u * block_rows + n * w);
        }
        if (!Training || &layer == layer_ + layers_ - 2) return;
        for (int u = 0; u < layer.out; u += w)
            for (int n = 0; n < vectors; ++n) {
                if (has_halves && layer.out - u <= half_lanes<T>)
                    transpose_units<half_lanes<T>>(layer, tape, u, n);
                else
                    transpose_units<w>(layer, tape, u, n);
            }
    }
    template <Activation A, bool Training, int Count>
    MVENET_INLINE void activate_some(const Layer<T>& layer, T* tape, int at) const {
        constexpr int w = lanes<T>;
        T* const values = tape + layer.value + at;
        Vec<T> value[Count], slope[Count];
        each<Count>([&](int j) { value[j] = load<T>(values + j * w); });
        activate<T, A, Count>(value, slope);
        each<Count>([&](int j) {
            store<T>(values + j * w, Training ? value[j] : bounded_value<T>(value[j]));
            if (Training) store<T>(tape + layer.slope + at + j * w, slope[j]);
        });
    }

    // `Count` units of a vector of rows.
    template <int Count> void transpose_units(const Layer<T>& layer, T* tape, int u, int n) const {
        constexpr int w = lanes<T>;
        const int stride = row_stride<T>(layer.out);
        const T* from = tape + layer.value + u * block_rows + n * w;
        T* to = tape + layer.transposed + n * w * stride + u;
        Vec<T> square[Count];
#pragma GCC unroll 16
        for (int j = 0; j < Count; ++j) square[j] = load<T>(from + j * block_rows);
        transpose<T, Count>(square);
#pragma GCC unroll 16
        for (int j = 0; j < Count; ++j) {
            if constexpr (Count == w) {
                store<T>(to + j * stride, square[j]);
            } else {
                store_half<T>(to + j * stride, half<T>(square[j], false));
                store_half<T>(to + (Count + j) * stride, half<T>(square[j], true));
            }
        }
    }

    // Bias gradients: sums of delta over the rows, for as many units at once as a register holds.
    // The padding collects what lies there, which nothing ever reads.
    void sum_rows(const Layer<T>& layer, const T* delta, int vectors, bool add) const {
        constexpr int w = lanes<T>;
        for (int u = 0; u < layer.out; u += w) {
            const T* const first = delta + std::ptrdiff_t(u) * block_rows;
            T* const to = layer.bias_gradient + u;
            if (has_halves && layer.out - u <= half_lanes<T>)
                sum_units<half_lanes<T>>(to, first, vectors, add);
            else
                sum_units<w>(to, first, vectors, add);
        }
    }
    template <int Count> void sum_units(T* to, const T* delta, int vectors, bool add) const {
        constexpr int w = lanes<T>;
        Vec<T> square[Count];
#pragma GCC unroll 16
        for (int j = 0; j < Count; ++j) {
            const T* row = delta + j * block_rows;
            square[j] = load<T>(row);
            for (int n = 1; n < vectors; ++n) square[j] += load<T>(row + n * w);
        }
        store_sums<Count>(to, square, add);
    }
    // The sum of each vector, or add it to what is there.
    template <int Count> static void store_sums(T* to, Vec<T>* of, bool add) {
        const Vec<T> total = lane_sums<T, Count>(of);
        if constexpr (Count == lanes<T>) {
            store<T>(to, add ? load<T>(to) + total : total);
        } else {
            const HalfVec<T> both = half<T>(total, false) + half<T>(total, true);
            store_half<T>(to, add ? load_half<T>(to) + both : both);
        }
    }

    int layers_;
    Activation activation_;
    bool training_;
    Layer<T>* layer_;
    std::ptrdiff_t parameters_ = 0, tape_ = 0;
    T* parameter_ = nullptr;
    T* gradient_ = nullptr;
    Staircase<T>* staircase_ = nullptr;
};

}  // namespace mvenet::MVENET_ISA
