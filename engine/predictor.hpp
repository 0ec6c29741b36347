// What networks say of the rows of a table.
//
// Every row takes the same path through the same instructions, whatever stands beside it.
#pragma once

#include "arena.hpp"
#include "gather.hpp"
#include "kernel.hpp"
#include "link.hpp"
#include "mlp.hpp"
#include "single.hpp"
#include "standardise.hpp"
#include "steps.hpp"

namespace mvenet::MVENET_ISA {

// Rows of a table, standardised for one network after the other.
template <class T> class PlainReader {
public:
    PlainReader(const Plan& plan, const Ensemble<T>& networks, const Table& table,
                std::int64_t start, std::int64_t n)
        : networks_(networks), table_(table), start_(start), n_(n), inputs_(plan.inputs),
          blocks_(int((n + block_rows - 1) / block_rows)),
          x_(arena_.array<T>(std::ptrdiff_t(plan.inputs) * block_rows)),
          block_(arena_.array<Block<T>>(blocks_)), gather_(plan.inputs, blocks_, arena_) {}

    static constexpr bool begins = false;  // with the first layer
    std::ptrdiff_t size() const { return 0; }
    void place(T*) {}

    // The rows as the network sees them; networks trained on the same rows see the same.
    void prepare(std::int64_t k, const Perceptron<T>&, const Perceptron<T>&) {
        const auto same = [&](const double* a, const double* b) {
            return __builtin_memcmp(a, b, sizeof(double) * std::size_t(inputs_)) == 0;
        };
        const Scaling* const before = k ? &networks_.scalings[k - 1] : nullptr;
        const Scaling& now = networks_.scalings[k];
        if (before && same(before->x_mean, now.x_mean) && same(before->x_scale, now.x_scale))
            return;
        Rows<T> data;
        data.x = x_;
        data.stride = inputs_;
        for (int b = 0; b < blocks_; ++b) {
            const std::int64_t at = std::int64_t(b) * block_rows, left = n_ - at;
            const int count = int(left < block_rows ? left : block_rows);
            standardise<T>(table_, now, nullptr, start_ + at, count, x_, inputs_);
            if (!networks_.kept || n_ > 1) block_[b] = gather_(b, data, nullptr, 0, count);
        }
    }
    void forward(bool, const Perceptron<T>& net, int b, int, T* tape) const {
        net.template forward<false>(block_[b], tape);
    }
    // What a network reads that gets one row at a time.
    void first(bool, T* to) const { __builtin_memcpy(to, x_, sizeof(T) * std::size_t(inputs_)); }

private:
    Arena arena_;
    const Ensemble<T>& networks_;
    const Table& table_;
    std::int64_t start_, n_;
    int inputs_, blocks_;
    T* x_;
    Block<T>* block_;
    Gatherer<T> gather_;
};

template <class T, class Reader> class Predictor {
public:
    Predictor(const Plan& plan, const Ensemble<T>& networks, const Table& table, std::int64_t start,
              std::int64_t n)
        : networks_(networks), natural_(plan.natural), start_(start), n_(n),
          blocks_(int((n + block_rows - 1) / block_rows)), reader_(plan, networks, table, start, n),
          mean_(plan.mean, plan.activation, false, arena_),
          variance_(plan.variance, plan.activation, false, arena_),
          one_mean_(plan.mean, plan.activation, begun(plan.mean), arena_),
          one_variance_(plan.variance, plan.activation, begun(plan.variance), arena_),
          mean_tape_(arena_.array<T>(mean_.tape())),
          variance_tape_(arena_.array<T>(variance_.tape())) {}

    // Numbers of what is kept of a network.
    std::ptrdiff_t kept() const { return reader_.size() + one_mean_.size() + one_variance_.size(); }
    void keep(T* to) {
        for (std::int64_t k = 0; k < networks_.size; ++k, to += kept()) {
            variance_.borrow(mean_.borrow(networks_.parameters[k]));
            reader_.place(to);
            reader_.prepare(k, mean_, variance_);
            one_mean_.keep(mean_, to + reader_.size());
            one_variance_.keep(variance_, to + reader_.size() + one_mean_.size());
        }
    }

    void run(const Listener& listener) {
        if (networks_.kept && n_ == 1) return run_one(listener);
        for (std::int64_t k = 0; k < networks_.size; ++k) {
            variance_.borrow(mean_.borrow(networks_.parameters[k]));
            reader_.prepare(k, mean_, variance_);
            for (int b = 0; b < blocks_; ++b) {
                reader_.forward(false, mean_, b, rows(b), mean_tape_);
                if (listener.deviations || natural_)
                    reader_.forward(true, variance_, b, rows(b), variance_tape_);
                tell(k, b, listener);
            }
        }
    }

private:
    static bool begun(const Shape& shape) { return Reader::begins && shape.sizes[0] > 0; }

    void run_one(const Listener& listener) {
        for (std::int64_t k = 0; k < networks_.size; ++k) {
            reader_.prepare(k, mean_, variance_);
            const T* const weights = networks_.kept + k * kept() + reader_.size();
            mean_.output(mean_tape_)[0] = one(false, weights);
            if (listener.deviations || natural_)
                variance_.output(variance_tape_)[0] = one(true, weights + one_mean_.size());
            tell(k, 0, listener);
        }
    }
    T one(bool variance, const T* weights) {
        Single<T>& net = variance ? one_variance_ : one_mean_;
        if (net.reads()) reader_.first(variance, net.input());
        return net(weights);
    }
    void tell(std::int64_t k, int b, const Listener& listener) {
        double mean[block_rows], deviation[block_rows];
        for (int r = 0; r < rows(b); r += lanes<T>) {
            const Vec<T> first = load<T>(mean_.output(mean_tape_) + r);
            const T* const second = variance_.output(variance_tape_) + r;
            Linked<T> out = linked<T>(first);
            if (natural_)
                out = linked_naturally<T>(first, load<T>(second));
            else if (listener.deviations)
                out = linked<T>(first, load<T>(second));
            const Vec<T> root = square_root<T>(out.variance);
            for (int i = 0; i < lanes<T>; ++i) {
                mean[r + i] = bounded(double(out.mean[i]));
                deviation[r + i] = bounded(double(root[i]));
            }
        }
        listener.tell(listener.context, k, first(b), rows(b), mean,
                      listener.deviations ? deviation : nullptr);
    }

    static double bounded(double z) {
        return z > farthest ? farthest : z < -farthest ? -farthest : z;
    }
    std::int64_t first(int b) const { return start_ + std::int64_t(b) * block_rows; }
    int rows(int b) const {
        const std::int64_t left = start_ + n_ - first(b);
        return int(left < block_rows ? left : block_rows);
    }

    Arena arena_;
    const Ensemble<T>& networks_;
    bool natural_;
    std::int64_t start_, n_;
    int blocks_;
    Reader reader_;
    Perceptron<T> mean_, variance_;
    Single<T> one_mean_, one_variance_;
    T *mean_tape_, *variance_tape_;
};

template <class T>
void predict(const Plan& plan, const Ensemble<T>& networks, const Table& table, std::int64_t start,
             std::int64_t n, const Listener& listener) {
    if (table.encoding)
        Predictor<T, StepReader<T>>(plan, networks, table, start, n).run(listener);
    else
        Predictor<T, PlainReader<T>>(plan, networks, table, start, n).run(listener);
}

// Of networks that read rows one by one, what is kept: written to `to`, or only counted.
template <class T>
std::ptrdiff_t keep(const Plan& plan, const Ensemble<T>& networks, const Table& table, T* to) {
    const auto kept = [&](auto&& predictor) {
        if (to) predictor.keep(to);
        return predictor.kept();
    };
    return table.encoding ? kept(Predictor<T, StepReader<T>>(plan, networks, table, 0, 0))
                          : kept(Predictor<T, PlainReader<T>>(plan, networks, table, 0, 0));
}

}  // namespace mvenet::MVENET_ISA
