// A network that reads one row.
//
// With rows as lanes (mlp.hpp) a row by itself would use one lane of each vector. Here units are
// lanes: weights are turned round once, to [in][out], and kept. A result is the same chain of fused
// multiply-adds as in product.hpp, so the row has the same bits as in company.
#pragma once

#include "kernel.hpp"
#include "mlp.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

template <class T> class Single {
public:
    // `begun`: the first layer is somebody else's work.
    Single(const Shape& shape, Activation activation, bool begun, Arena& arena)
        : shape_(shape), activation_(activation), first_(begun ? 1 : 0) {
        int widest = lanes<T>;
        for (int l = 0; l <= shape.layers; ++l)
            if (shape.sizes[l] > widest) widest = shape.sizes[l];
        for (T*& values : values_) values = arena.array<T>(padded<T>(widest));
    }

    std::ptrdiff_t size() const {  // numbers of the weights as they are kept
        std::ptrdiff_t size = 0;
        for (int l = first_; l < shape_.layers; ++l) size += of_layer(l);
        return size;
    }

    void keep(const Perceptron<T>& net, T* to) const {
        for (int l = first_; l < shape_.layers; to += of_layer(l++)) {
            const Layer<T>& layer = net.layer(l);
            const int width = padded<T>(layer.out);
            for (int o = 0; o < width; ++o) {
                const bool there = o < layer.out;
                for (int i = 0; i < layer.in; ++i)
                    to[(i + 1) * width + o] = there ? layer.weight[o * layer.stride + i] : T(0);
                to[o] = there ? layer.bias[o] : T(0);
            }
        }
    }

    bool reads() const { return shape_.sizes[0] > 0; }
    T* input() { return values_[0]; }  // the row, or what enters the first layer's activations

    // The output, given what `keep` has written.
    T operator()(const T* kept) {
        T *from = values_[0], *to = values_[1];
        for (int l = first_; l < shape_.layers; kept += of_layer(l++)) {
            if (l > 0) activate_all(from, shape_.sizes[l]);
            multiply(kept, from, shape_.sizes[l], padded<T>(shape_.sizes[l + 1]), to);
            std::swap(from, to);
        }
        return from[0];
    }

private:
    std::ptrdiff_t of_layer(int l) const {
        return std::ptrdiff_t(shape_.sizes[l] + 1) * padded<T>(shape_.sizes[l + 1]);
    }

    void activate_all(T* values, int units) const {
        switch (activation_) {
#define MVENET_CASE(id, name) \
    case Activation::id: apply<Activation::id>(values, units); break;
            MVENET_ACTIVATIONS(MVENET_CASE)
#undef MVENET_CASE
        }
    }
    template <Activation A> static void apply(T* values, int units) {
        for (int u = 0; u < units; u += lanes<T>) {
            Vec<T> value = load<T>(values + u), slope;
            activate<T, A, 1>(&value, &slope);
            store<T>(values + u, bounded_value<T>(value));
        }
    }

    static void multiply(const T* weights, const T* from, int in, int width, T* to) {
        for (int u = 0; u < width; u += 8 * lanes<T>) switch ((width - u) / lanes<T>) {
                case 1: sums<1>(weights + u, from, in, width, to + u); break;
                case 2: sums<2>(weights + u, from, in, width, to + u); break;
                case 3: sums<3>(weights + u, from, in, width, to + u); break;
                case 4: sums<4>(weights + u, from, in, width, to + u); break;
                case 5: sums<5>(weights + u, from, in, width, to + u); break;
                case 6: sums<6>(weights + u, from, in, width, to + u); break;
                case 7: sums<7>(weights + u, from, in, width, to + u); break;
                default: sums<8>(weights + u, from, in, width, to + u);
            }
    }
    template <int N> static void sums(const T* weights, const T* from, int in, int width, T* to) {
        constexpr int w = lanes<T>;
        Vec<T> sum[N];
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) sum[n] = load<T>(weights + n * w);
        for (int i = 0; i < in; ++i) {
            weights += width;
#pragma GCC unroll 8
            for (int n = 0; n < N; ++n) sum[n] += splat<T>(from[i]) * load<T>(weights + n * w);
        }
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) store<T>(to + n * w, sum[n]);
    }

    Shape shape_;
    Activation activation_;
    int first_;
    T* values_[2];
};

}  // namespace mvenet::MVENET_ISA
