// One stage of one mean-variance network, from its first step to its last, and its predictions.
//
// Everything a step touches (weights, moments, activations) is small and stays in the core's cache;
// no step calls into anything. A batch is worked on in chunks of a few blocks: forward and backward
// block by block, then the gradients of the chunk, unit by unit, and after the last chunk Adam
// while they are at hand. If other threads lend a hand they take blocks, networks and units: each
// number is computed in the same way whoever computes it.
#pragma once

#include "adam.hpp"
#include "arena.hpp"
#include "gather.hpp"
#include "kernel.hpp"
#include "link.hpp"
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
                net.weight(l, o, i) = T(limit * (2 * random.uniform() - 1));
    }
}

// Whether a warm-up has converged: the loss of so many epochs, beyond the one that no mean can go
// below, is at most one per cent less than that of as many epochs before them.
class Convergence {
public:
    explicit Convergence(std::int64_t window) : window_(window) {}

    bool reached(double loss) {
        if (!window_) return false;
        now_ += loss - lowest;
        if (++epochs_ % window_) return false;
        const bool still = epochs_ > window_ && now_ > 0.99 * before_;
        before_ = now_;
        now_ = 0;
        return still;
    }

private:
    static constexpr double lowest = 1;  // the logarithm of the variance in a warm-up
    std::int64_t window_, epochs_ = 0;
    double before_ = 0, now_ = 0;
};

template <class T> class Trainer {
public:
    Trainer(const Plan& plan, const Stage& stage, const Rows<T>& train, const Rows<T>& valid,
            const Control& control)
        : plan_(plan), loss_of_{plan.objective, T(plan.beta), T(plan.df)}, stage_(stage),
          train_(train), valid_(valid), control_(control),
          trains_mean_(stage.mode != Mode::variance), trains_variance_(stage.mode != Mode::warmup),
          mean_(plan.mean, plan.activation, trains_mean_, arena_, plan.stairs, train.ends),
          variance_(plan.variance, plan.activation, trains_variance_, arena_, plan.stairs,
                    train.ends),
          crew_(control.crew), places_(places()),
          gather_(plan.inputs, places_, arena_, plan.stairs),
          block_(arena_.array<Block<T>>(places_)), loss_(arena_.array<Vec<T>>(places_)),
          mean_tapes_(arena_.array<T>(mean_.tape() * places_)),
          variance_tapes_(arena_.array<T>(variance_.tape() * places_)) {
        mean_.allocate(arena_);
        variance_.allocate(arena_);
        list_parts();
    }

    Outcome run(T* parameters, float* history) {
        start(parameters);
        const std::int64_t n = train_.n;
        const std::int64_t batches = (n + plan_.batch_size - 1) / plan_.batch_size;
        const bool stops_early = stage_.patience > 0 && valid_.n > 0;
        StepSize step_size(stage_, stage_.epochs * batches);
        Random random(stage_.seed,
                      stage_.mode == Mode::warmup ? Stream::warmup_batches : Stream::batches);
        std::int32_t* order = arena_.array<std::int32_t>(n);
        for (std::int64_t i = 0; i < n; ++i) order[i] = std::int32_t(i);
        if (!trains_mean_) keep_means();
        if (stops_early) prepare_best();
        Convergence convergence(stage_.window);
        double best = __builtin_inf();
        std::int64_t best_epoch = 0, epoch = 0, steps = 0;
        while (epoch < stage_.epochs) {
            shuffle(order, n, random);
            double loss = 0;
            for (std::int64_t at = 0; at < n; at += plan_.batch_size, ++steps) {
                const std::int64_t end = at + plan_.batch_size < n ? at + plan_.batch_size : n;
                loss += step(order, at, end, T(step_size.next()));
                if (stopped()) return {Status::interrupted, epoch, steps};
                if (steps % 64 == 63) control_.steps->fetch_add(64, std::memory_order_relaxed);
            }
            const double score = valid_.n ? mean_loss(valid_) : __builtin_nan("");
            if (history) {
                history[2 * epoch] = float(loss / double(n));
                history[2 * epoch + 1] = float(score);
            }
            ++epoch;
            if (!__builtin_isfinite(loss)) return {Status::diverged, epoch, steps};
            if (convergence.reached(loss / double(n))) break;
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
    // The gradients of some portions of a layer.
    struct Part {
        bool variance;
        int layer, from, to;
    };

    bool stopped() const { return control_.stop->load(std::memory_order_relaxed); }

    // Blocks that are worked on together: so many that their tapes stay in the second-level cache,
    // and enough to share between threads.
    int places() const {
        constexpr std::ptrdiff_t cache = 192 * 1024;
        const auto tape = std::ptrdiff_t(sizeof(T)) * (mean_.tape() + variance_.tape());
        std::int64_t most = cache / tape;
        if (crew_ && most < 2 * crew_->threads) most = 2 * crew_->threads;
        const std::int64_t rows = plan_.batch_size < train_.n ? plan_.batch_size : train_.n;
        const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
        if (most > blocks) most = blocks;
        return int(most < 1 ? 1 : most > 256 ? 256 : most);
    }

    void list_parts() {
        const int units = (crew_ ? 2 : 8) * tile_rows(2), columns = crew_ ? 4 : 1 << 30;
        for (const bool filling : {false, true}) {
            if (filling) part_ = arena_.array<Part>(parts_);
            parts_ = 0;
            for (const bool variance : {false, true}) {
                const Perceptron<T>& net = variance ? variance_ : mean_;
                for (int l = 0; (variance ? trains_variance_ : trains_mean_) && l < net.layers();
                     ++l)
                    for (int from = 0, to; from < net.portions(l); from = to, ++parts_) {
                        const int all = net.portions(l);
                        to = from + next_rows(all - from, net.has_stairs(l) ? columns : units);
                        to += to < all && to % 2;  // a row may end within a vector, two do not
                        if (filling) part_[parts_] = {variance, l, from, to};
                    }
            }
        }
    }

    // Call task(i) for every i < n, here or with the help of the crew.
    template <class Task> void each(int n, Task task) {
        if (!crew_ || n == 1) {
            for (int i = 0; i < n; ++i) task(i);
            return;
        }
        crew_->run(
            crew_, n, [](void* context, int i) { (*static_cast<Task*>(context))(i); }, &task);
    }

    // Fisher and Yates. The places to swap with are drawn some at a time, so that all of them can
    // be fetched from memory at once.
    static void shuffle(std::int32_t* order, std::int64_t n, Random& random) {
        constexpr int some = 64;
        std::int64_t place[some];
        for (std::int64_t i = n - 1; i > 0; i -= some) {
            const int count = int(i < some ? i : some);
            for (int s = 0; s < count; ++s)
                place[s] = std::int64_t(random.below(std::uint64_t(i - s) + 1));
            for (int s = 0; s < count; ++s)
                (void)*static_cast<const volatile std::int32_t*>(order + place[s]);
            for (int s = 0; s < count; ++s) {
                const std::int32_t swap = order[i - s];
                order[i - s] = order[place[s]];
                order[place[s]] = swap;
            }
        }
    }

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
        for (const Perceptron<T>* net : {&mean_, &variance_})
            if (net->has_stairs(0)) net->build(0, net->portions(0));
        if (stage_.init_var_bias)
            variance_.output_bias() =
                T(output_of_variance(mean_square(valid_.n ? valid_ : train_)));
    }

    // One batch and its update; returns the sum of its rows' weighted losses.
    double step(const std::int32_t* order, std::int64_t begin, std::int64_t end, T step_size) {
        const T scale = T(1) / T(end - begin);
        Vec<T> loss{};
        const std::int64_t chunk = std::int64_t(places_) * block_rows;
        for (std::int64_t at = begin; at < end && !stopped(); at += chunk) {
            const std::int64_t left = end - at < chunk ? end - at : chunk;
            const int blocks = int((left + block_rows - 1) / block_rows);
            differentiate(order, at, left, blocks, scale);
            for (int b = 0; b < blocks; ++b) loss += loss_[b];
            const bool add = at > begin, last = at + chunk >= end;
            each(parts_, [&](int i) {
                const Part& part = part_[i];
                (part.variance ? variance_ : mean_)
                    .gradients(part.layer, part.from, part.to, block_, gather_.size(),
                               part.variance ? variance_tapes_ : mean_tapes_, blocks, add);
                if (last) update(part, step_size);
            });
        }
        return double(sum<T>(loss));
    }

    // Forward and backward of `rows` rows in `blocks` blocks. Whole blocks if there are enough to
    // share; else the two networks side by side, which meet to compute the loss.
    void differentiate(const std::int32_t* order, std::int64_t at, std::int64_t rows, int blocks,
                       T scale) {
        const auto fetch = [&](int b) {
            const std::int64_t first = at + std::int64_t(b) * block_rows;
            const std::int64_t left = at + rows - first;
            const int count = int(left < block_rows ? left : block_rows);
            gather_.announce(train_, order, first + count, first + 2 * block_rows);
            block_[b] = gather_(b, train_, order, first, count);
        };
        const auto forward = [&](int b, bool variance) {
            if (variance ? trains_variance_ : trains_mean_)
                (variance ? variance_ : mean_).template forward<true>(block_[b], tape(b, variance));
        };
        const auto backward = [&](int b, bool variance) {
            if (variance ? trains_variance_ : trains_mean_)
                (variance ? variance_ : mean_).backward(block_[b], tape(b, variance));
        };
        const auto loss = [&](int b) {
            loss_[b] = derivatives(b, order + at + b * block_rows, scale);
        };
        const bool whole = !crew_ || blocks >= 2 * crew_->threads || blocks % crew_->threads == 0 ||
                           !(trains_mean_ && trains_variance_);
        if (whole) {
            each(blocks, [&](int b) {
                fetch(b);
                forward(b, false);
                forward(b, true);
                loss(b);
                backward(b, false);
                backward(b, true);
            });
            return;
        }
        for (int b = 0; b < blocks; ++b) fetch(b);
        each(2 * blocks, [&](int i) { forward(i % blocks, i >= blocks); });
        for (int b = 0; b < blocks; ++b) loss(b);
        each(2 * blocks, [&](int i) { backward(i % blocks, i >= blocks); });
    }

    T* tape(int b, bool variance) const {
        return variance ? variance_tapes_ + b * variance_.tape() : mean_tapes_ + b * mean_.tape();
    }

    // From the outputs of the two networks to the derivatives that backward starts from.
    Vec<T> derivatives(int b, const std::int32_t* order, T scale) {
        T *const mean = mean_.output(tape(b, false)), *const output =
                                                          variance_.output(tape(b, true));
        const Block<T>& x = block_[b];
        if (!trains_mean_)
            for (int r = 0; r < x.rows; ++r) mean[r] = kept_means_[order[r]];
        Vec<T> loss{};
        for (int i = 0; i < x.vectors * lanes<T>; i += lanes<T>) {
            const Linked<T> out = outputs(mean + i, output + i);
            const Vec<T> r = load<T>(gather_.y(b) + i) - out.mean;
            const Vec<T> w = load<T>(gather_.weight(b) + i);
            if (plan_.natural) {
                const Vec<T> by_mean = loss_of_.d_mean(r, out.variance);
                const Vec<T> by_log = loss_of_.d_log_variance(r, out.variance) + by_mean * out.mean;
                store<T>(output + i, w * scale * (out.slope * by_log));
                store<T>(mean + i, w * scale * (by_mean * out.variance));
                loss += w * loss_of_.row(r, out.variance);
                continue;
            }
            if (trains_variance_)
                store<T>(output + i,
                         w * scale * (out.slope * loss_of_.d_log_variance(r, out.variance)));
            if (trains_mean_) store<T>(mean + i, w * scale * loss_of_.d_mean(r, out.variance));
            loss += w * loss_of_.row(r, out.variance);
        }
        return loss;
    }

    // What the outputs of the two networks mean in this stage.
    MVENET_INLINE Linked<T> outputs(const T* mean, const T* output) const {
        if (!trains_variance_) return linked<T>(load<T>(mean));
        if (plan_.natural) return linked_naturally<T>(load<T>(mean), load<T>(output));
        return linked<T>(load<T>(mean), load<T>(output));
    }

    void update(const Part& part, T step_size) {
        const Perceptron<T>& net = part.variance ? variance_ : mean_;
        T* const first = part.variance ? variance_moments_ : mean_moments_;
        T* const second = first + net.parameters();
        const Layer<T>& layer = net.layer(part.layer);
        const T penalty = T(part.variance ? stage_.reg_var : stage_.reg_mean);
        const T clip = T(plan_.clip_value);
        const auto move = [&](T* parameter, const T* gradient, std::ptrdiff_t n, T its_penalty) {
            const std::ptrdiff_t at = parameter - net.parameter();
            adam<T>(parameter, gradient, first + at, second + at, n, its_penalty, clip, step_size);
        };
        // With stairs a column after the other: what one step writes the next finds in the cache.
        const int some = net.has_stairs(part.layer) ? 1 : part.to - part.from;
        for (int from = part.from; from < part.to; from += some) {
            if (net.has_stairs(part.layer)) net.collect(from, from + some);
            const std::ptrdiff_t at = net.begin(part.layer, from);
            move(layer.weight + at, layer.weight_gradient + at,
                 net.begin(part.layer, from + some) - at, penalty);
            if (net.has_stairs(part.layer)) net.build(from, from + some);
        }
        if (part.from == 0) move(layer.bias, layer.bias_gradient, padded<T>(layer.out), T(0));
    }

    // visit(first row, place) for all blocks of rows in order, forward done
    template <class Visit> void sweep(const Rows<T>& rows, bool variance, Visit visit) {
        const std::int64_t chunk = std::int64_t(places_) * block_rows;
        for (std::int64_t at = 0; at < rows.n && !stopped(); at += chunk) {
            const std::int64_t left = rows.n - at < chunk ? rows.n - at : chunk;
            const int blocks = int((left + block_rows - 1) / block_rows);
            each(blocks, [&](int b) {
                const std::int64_t first = at + std::int64_t(b) * block_rows;
                const int count =
                    int(at + left - first < block_rows ? at + left - first : block_rows);
                block_[b] = gather_(b, rows, nullptr, first, count);
                mean_.template forward<false>(block_[b], tape(b, false));
                if (variance) variance_.template forward<false>(block_[b], tape(b, true));
            });
            for (int b = 0; b < blocks; ++b) visit(at + std::int64_t(b) * block_rows, b);
        }
    }

    double mean_square(const Rows<T>& rows) {
        double total = 0;
        sweep(rows, false, [&](std::int64_t, int b) {
            for (int r = 0; r < block_[b].rows; ++r) {
                const double error =
                    double(gather_.y(b)[r]) - double(mean_.output(tape(b, false))[r]);
                total += double(gather_.weight(b)[r]) * error * error;
            }
        });
        return total / double(rows.n);
    }

    double mean_loss(const Rows<T>& rows) {
        double total = 0;
        sweep(rows, trains_variance_, [&](std::int64_t, int b) {
            const T *mean = mean_.output(tape(b, false)), *output = variance_.output(tape(b, true));
            for (int i = 0; i < block_[b].vectors * lanes<T>; i += lanes<T>) {
                const Linked<T> out = outputs(mean + i, output + i);
                const Vec<T> loss =
                    load<T>(gather_.weight(b) + i) *
                    loss_of_.row(load<T>(gather_.y(b) + i) - out.mean, out.variance);
                for (int r = 0; r < lanes<T> && i + r < block_[b].rows; ++r)
                    total += double(loss[r]);
            }
        });
        return total / double(rows.n);
    }

    // The mean does not change in a variance stage: compute it once for every row.
    void keep_means() {
        kept_means_ = arena_.array<T>(train_.n);
        sweep(train_, false, [&](std::int64_t at, int b) {
            std::memcpy(kept_means_ + at, mean_.output(tape(b, false)),
                        sizeof(T) * std::size_t(block_[b].rows));
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
    const Loss<T> loss_of_;
    const Stage& stage_;
    const Rows<T>& train_;
    const Rows<T>& valid_;
    const Control& control_;
    bool trains_mean_, trains_variance_;
    Perceptron<T> mean_, variance_;
    Crew* crew_;
    int places_;  // for blocks
    Gatherer<T> gather_;
    Block<T>* block_;  // of each place, as are the losses and the tapes
    Vec<T>* loss_;
    T *mean_tapes_, *variance_tapes_;
    Part* part_ = nullptr;
    int parts_ = 0;
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

}  // namespace mvenet::MVENET_ISA
