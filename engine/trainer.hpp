// One stage of one mean-variance network, from its first step to its last, and its predictions.
//
// Everything a step touches (weights, moments, activations) is small and stays in the core's cache;
// no step calls into anything.
#pragma once

#include "adam.hpp"
#include "arena.hpp"
#include "kernel.hpp"
#include "mlp.hpp"
#include "objective.hpp"
#include "rng.hpp"

namespace mvenet::MVENET_ISA {

// Glorot's uniform weights, biases zero.
template <class T> void draw_weights(const Perceptron<T>& net, Random random) {
    for (int l = 0; l < net.layers(); ++l) {
        const Layer<T>& layer = net.layer(l);
        const double limit = __builtin_sqrt(6.0 / (layer.in + layer.out));
        for (int o = 0; o < layer.out; ++o)
            for (int i = 0; i < layer.in; ++i)
                layer.weight[o * layer.in_padded + i] = T(limit * (2 * random.uniform() - 1));
    }
}

// Copies rows of the data into a block, in both orders.
template <class T> class Gatherer {
public:
    Gatherer(int inputs, Arena& arena)
        : inputs_(inputs), width_(padded<T>(inputs)),
          rows_(arena.array<T>(std::ptrdiff_t(width_) * block_rows)),
          units_(arena.array<T>(std::ptrdiff_t(width_) * block_rows)),
          y(arena.array<T>(block_rows)), weight(arena.array<T>(block_rows)) {
        for (int i = 0; i < lanes<T>; ++i) {
            const bool inside = inputs_ - (width_ - lanes<T>) > i;
            tail_[i] = inside ? typename Number<T>::Int(-1) : 0;
        }
    }

    // Rows order[0 .. count), or the first `count` of the data if order is null.
    Block<T> operator()(const Rows<T>& data, const std::int32_t* order, std::int64_t start,
                        int count) {
        constexpr int w = lanes<T>;
        const int vectors = (count + w - 1) / w;
        for (int r = 0; r < vectors * w; ++r) {
            if (r >= count) {
                for (int i = 0; i < width_; i += w) store<T>(rows_ + r * width_ + i, Vec<T>{});
                y[r] = weight[r] = 0;
                continue;
            }
            const std::int64_t row = order ? order[start + r] : start + r;
            const T* from = data.x + row * inputs_;
            T* to = rows_ + r * width_;
            int i = 0;
            for (; i < width_ - w; i += w) store<T>(to + i, load<T>(from + i));
            if (width_) store<T>(to + i, (Vec<T>)((IntVec<T>)load<T>(from + i) & tail_));
            y[r] = data.y ? data.y[row] : T(0);
            weight[r] = data.weight ? data.weight[row] : T(1);
        }
        for (int i = 0; i < width_; i += w)
            for (int n = 0; n < vectors; ++n) {
                Vec<T> square[w];
                for (int j = 0; j < w; ++j) square[j] = load<T>(rows_ + (n * w + j) * width_ + i);
                transpose<T>(square);
                for (int j = 0; j < w; ++j)
                    store<T>(units_ + (i + j) * block_rows + n * w, square[j]);
            }
        return {units_, rows_, count, vectors};
    }

private:
    int inputs_, width_;
    T *rows_, *units_;
    IntVec<T> tail_;

public:
    T *y, *weight;  // of the rows of the block; zero past the last
};

template <class T> class Trainer {
public:
    Trainer(const Plan& plan, const Stage& stage, const Rows<T>& train, const Rows<T>& valid,
            const Control& control)
        : plan_(plan), stage_(stage), train_(train), valid_(valid), control_(control),
          trains_mean_(stage.mode != Mode::variance), trains_variance_(stage.mode != Mode::warmup),
          gather_(plan.inputs, arena_), mean_(plan.mean, plan.activation, trains_mean_, arena_),
          variance_(plan.variance, plan.activation, trains_variance_, arena_) {}

    Outcome run(T* parameters, float* history) {
        start(parameters);
        const std::int64_t n = train_.n;
        const std::int64_t batches = (n + plan_.batch_size - 1) / plan_.batch_size;
        const bool stops_early = stage_.patience > 0 && valid_.n > 0;
        StepSize step_size(stage_, plan_.beta2, stage_.epochs * batches);
        Random random(stage_.seed,
                      stage_.mode == Mode::warmup ? Stream::warmup_batches : Stream::batches);
        std::int32_t* order = arena_.array<std::int32_t>(n);
        for (std::int64_t i = 0; i < n; ++i) order[i] = std::int32_t(i);
        if (!trains_mean_) keep_means();
        if (stops_early) prepare_best();
        double best = __builtin_inf();
        std::int64_t best_epoch = 0, epoch = 0, steps = 0;
        while (epoch < stage_.epochs) {
            for (std::int64_t i = n - 1; i > 0; --i) {
                const auto j = std::int64_t(random.below(std::uint64_t(i) + 1));
                const std::int32_t swap = order[i];
                order[i] = order[j];
                order[j] = swap;
            }
            double loss = 0;
            for (std::int64_t at = 0; at < n; at += plan_.batch_size, ++steps) {
                const std::int64_t end = at + plan_.batch_size < n ? at + plan_.batch_size : n;
                loss += batch(order, at, end, n);
                if (stopped()) return {Status::interrupted, epoch, steps};
                update(T(step_size.next()));
                if (steps % 64 == 63) control_.steps->fetch_add(64, std::memory_order_relaxed);
            }
            const double score = valid_.n ? mean_loss(valid_) : __builtin_nan("");
            if (history) {
                history[2 * epoch] = float(loss / double(n));
                history[2 * epoch + 1] = float(score);
            }
            ++epoch;
            if (!__builtin_isfinite(loss)) return {Status::diverged, epoch, steps};
            if (!stops_early) continue;
            if (score < best) {
                best = score;
                best_epoch = epoch;
                copy_best(true);
            } else if (epoch - best_epoch >= stage_.patience) {
                break;
            }
        }
        control_.steps->fetch_add(steps % 64, std::memory_order_relaxed);
        if (stops_early) copy_best(false);
        T* end = variance_.pack(mean_.pack(parameters));
        // activations are bounded by 1e15 when predicting: with such weights nothing can overflow
        for (const T* p = parameters; p != end; ++p)
            if (!(__builtin_fabs(double(*p)) < 1e15)) return {Status::diverged, epoch, steps};
        return {Status::trained, epoch, steps};
    }

private:
    bool stopped() const { return control_.stop->load(std::memory_order_relaxed); }

    void start(const T* parameters) {
        if (stage_.fresh) {
            draw_weights(mean_, Random(stage_.seed, Stream::mean_weights));
            draw_weights(variance_, Random(stage_.seed, Stream::variance_weights));
            variance_.output_bias() = 1;
        } else {
            variance_.unpack(mean_.unpack(parameters));
        }
        if (trains_mean_) mean_moments_ = arena_.array<T>(2 * mean_.parameters());
        if (trains_variance_) variance_moments_ = arena_.array<T>(2 * variance_.parameters());
        if (stage_.init_var_bias) {
            const double error = mean_square(valid_.n ? valid_ : train_);
            variance_.output_bias() =
                T(__builtin_log(error > variance_floor ? error : variance_floor));
        }
    }

    // One batch: gradients of its mean loss; returns the sum of its rows' weighted losses.
    double batch(const std::int32_t* order, std::int64_t begin, std::int64_t end, std::int64_t n) {
        const T scale = T(1) / T(end - begin);
        Vec<T> loss{};
        for (std::int64_t at = begin; at < end && !stopped(); at += block_rows) {
            const int count = int(end - at < block_rows ? end - at : block_rows);
            for (std::int64_t i = at + count; i < at + 2 * block_rows && i < n; ++i)
                __builtin_prefetch(train_.x + std::int64_t(order[i]) * plan_.inputs);
            const Block<T> x = gather_(train_, order, at, count);
            if (trains_mean_) mean_.template forward<true>(x);
            if (trains_variance_) variance_.template forward<true>(x);
            T kept[block_rows];
            if (!trains_mean_)
                for (int r = 0; r < x.vectors * lanes<T>; ++r)
                    kept[r] = r < count ? kept_means_[order[at + r]] : T(0);
            loss += derivatives(x, trains_mean_ ? mean_.output() : kept, scale);
            if (trains_mean_) mean_.backward(x, at == begin);
            if (trains_variance_) variance_.backward(x, at == begin);
        }
        return double(sum<T>(loss));
    }

    // From the outputs of the two networks to the derivatives that backward starts from.
    Vec<T> derivatives(const Block<T>& x, const T* mean, T scale) {
        const T beta = T(plan_.beta);
        Vec<T> loss{};
        for (int i = 0; i < x.vectors * lanes<T>; i += lanes<T>) {
            const Vec<T> r = load<T>(gather_.y + i) - load<T>(mean + i);
            const Vec<T> w = load<T>(gather_.weight + i);
            Vec<T> v = splat<T>(T(warmup_variance));
            if (trains_variance_) {
                const Vec<T> e = exponential<T>(load<T>(variance_.output() + i));
                v = e + T(variance_floor);
                store<T>(variance_.output_delta() + i,
                         w * scale * d_log_variance<T>(plan_.objective, beta, r, e, v));
            }
            if (trains_mean_)
                store<T>(mean_.output_delta() + i,
                         w * scale * d_mean<T>(plan_.objective, beta, r, v));
            loss += w * row_loss<T>(r, v);
        }
        return loss;
    }

    void update(T step) {
        if (trains_mean_) update(mean_, mean_moments_, T(stage_.reg_mean), step);
        if (trains_variance_) update(variance_, variance_moments_, T(stage_.reg_var), step);
    }

    void update(Perceptron<T>& net, T* moments, T penalty, T step) {
        T* second = moments + net.parameters();
        for (int l = 0; l < net.layers(); ++l) {
            const Layer<T>& layer = net.layer(l);
            const std::ptrdiff_t at = layer.weight - net.parameter();
            const std::ptrdiff_t weights = std::ptrdiff_t(layer.out) * layer.in_padded;
            const T clip = T(plan_.clip_value);
            adam<T>(layer.weight, layer.weight_gradient, moments + at, second + at, weights,
                    penalty, clip, step, plan_.beta2);
            adam<T>(layer.bias, layer.bias_gradient, moments + at + weights, second + at + weights,
                    layer.out_padded, T(0), clip, step, plan_.beta2);
        }
    }

    // visit(first row, block) for all rows in order
    template <class Visit> void sweep(const Rows<T>& rows, Visit visit) {
        for (std::int64_t at = 0; at < rows.n && !stopped(); at += block_rows) {
            const int count = int(rows.n - at < block_rows ? rows.n - at : block_rows);
            visit(at, gather_(rows, nullptr, at, count));
        }
    }

    double mean_square(const Rows<T>& rows) {
        double total = 0;
        sweep(rows, [&](std::int64_t, const Block<T>& x) {
            mean_.template forward<false>(x);
            for (int r = 0; r < x.rows; ++r) {
                const double error = double(gather_.y[r]) - double(mean_.output()[r]);
                total += double(gather_.weight[r]) * error * error;
            }
        });
        return total / double(rows.n);
    }

    double mean_loss(const Rows<T>& rows) {
        double total = 0;
        sweep(rows, [&](std::int64_t, const Block<T>& x) {
            mean_.template forward<false>(x);
            if (trains_variance_) variance_.template forward<false>(x);
            for (int r = 0; r < x.rows; ++r) {
                const double error = double(gather_.y[r]) - double(mean_.output()[r]);
                const double v = trains_variance_
                                     ? __builtin_exp(double(variance_.output()[r])) + variance_floor
                                     : warmup_variance;
                total += double(gather_.weight[r]) * (__builtin_log(v) + error * error / v);
            }
        });
        return total / double(rows.n);
    }

    // The mean does not change in a variance stage: compute it once for every row.
    void keep_means() {
        kept_means_ = arena_.array<T>(train_.n);
        sweep(train_, [&](std::int64_t at, const Block<T>& x) {
            mean_.template forward<false>(x);
            std::memcpy(kept_means_ + at, mean_.output(), sizeof(T) * std::size_t(x.rows));
        });
    }

    void prepare_best() {
        best_ = arena_.array<T>(mean_.parameters() + variance_.parameters());
        copy_best(true);
    }
    void copy_best(bool keep) {
        T* at = best_;
        for (Perceptron<T>* net : {&mean_, &variance_}) {
            const auto bytes = sizeof(T) * std::size_t(net->parameters());
            std::memcpy(keep ? at : net->parameter(), keep ? net->parameter() : at, bytes);
            at += net->parameters();
        }
    }

    Arena arena_;
    const Plan& plan_;
    const Stage& stage_;
    const Rows<T>& train_;
    const Rows<T>& valid_;
    const Control& control_;
    bool trains_mean_, trains_variance_;
    Gatherer<T> gather_;
    Perceptron<T> mean_, variance_;
    T* mean_moments_ = nullptr;
    T* variance_moments_ = nullptr;
    T* kept_means_ = nullptr;
    T* best_ = nullptr;
};

template <class T>
Outcome train(const Plan& plan, const Stage& stage, const Rows<T>& rows, const Rows<T>& valid,
              T* parameters, float* history, const Control& control) {
    return Trainer<T>(plan, stage, rows, valid, control).run(parameters, history);
}

// Every row takes the same path through the same instructions, whatever stands beside it.
template <class T>
void predict(const Plan& plan, const T* parameters, const T* x, std::int64_t n, T* mean,
             T* variance) {
    Arena arena;
    Perceptron<T> mean_net(plan.mean, plan.activation, false, arena);
    Perceptron<T> variance_net(plan.variance, plan.activation, false, arena);
    variance_net.unpack(mean_net.unpack(parameters));
    Gatherer<T> gather(plan.inputs, arena);
    Rows<T> rows;
    rows.x = x;
    rows.n = n;
    for (std::int64_t at = 0; at < n; at += block_rows) {
        const int count = int(n - at < block_rows ? n - at : block_rows);
        Block<T> block = gather(rows, nullptr, at, count);
        block.vectors = block_rows / lanes<T>;
        mean_net.template forward<false>(block);
        variance_net.template forward<false>(block);
        for (int r = 0; r < block_rows; r += lanes<T>) {
            T m[lanes<T>], v[lanes<T>];
            store<T>(m, load<T>(mean_net.output() + r));
            store<T>(v, exponential<T>(load<T>(variance_net.output() + r)) + T(variance_floor));
            for (int i = 0; i < lanes<T> && r + i < count; ++i) {
                mean[at + r + i] = m[i];
                variance[at + r + i] = v[i];
            }
        }
    }
}

}  // namespace mvenet::MVENET_ISA
