#include "fleet.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>

namespace mvenet {
namespace {

// Standardised inputs and predictions are kept within a million standard deviations, so that
// nothing overflows.
constexpr double farthest = 1e6;

double standardised(double value, double mean, double scale) {
    return std::clamp((value - mean) / scale, -farthest, farthest);
}

// A number of column j as the networks see it.
template <class T> T input(double value, int j, const Scaling& scaling) {
    const double z = standardised(value, scaling.x_mean[j], scaling.x_scale[j]);
    if (scaling.bound == INFINITY) return T(z);
    const double part = z / scaling.bound;
    return T(z / std::sqrt(1 + part * part));
}

double weight_of(const Table& table, std::int64_t row) {
    return table.weight ? table.weight[row] : 1.0;
}

// Weighted mean and population standard deviation of every column and, last, of y; a constant is
// centred and otherwise left alone. Two passes over the rows.
void measure(const Table& table, const Subset& subset, const Scaling& scaling) {
    struct Column {
        double shift = 0, low = INFINITY, high = -INFINITY, total = 0, mean = 0, squares = 0;
    };
    const int d = table.columns;
    std::vector<Column> columns(std::size_t(d) + 1);
    const auto value = [&](std::int64_t row, int j) {
        return j < d ? table.at(row, j) : table.y[row];
    };
    for (int j = 0; j <= d; ++j) columns[std::size_t(j)].shift = value(subset.train[0], j);
    double weights = 0;
    const double share = 1 / double(subset.n_train);  // sums of shares do not overflow
    for (std::int64_t i = 0; i < subset.n_train; ++i) {
        const std::int64_t row = subset.train[i];
        const double w = share * weight_of(table, row);
        weights += w;
        for (int j = 0; j <= d; ++j) {
            Column& c = columns[std::size_t(j)];
            const double v = value(row, j);
            c.total += w * (v - c.shift);
            c.low = std::min(c.low, v);
            c.high = std::max(c.high, v);
        }
    }
    for (Column& c : columns) c.mean = c.shift + c.total / weights;
    for (std::int64_t i = 0; i < subset.n_train; ++i) {
        const std::int64_t row = subset.train[i];
        const double w = share * weight_of(table, row);
        for (int j = 0; j <= d; ++j) {
            // squares of fractions of the range neither overflow nor vanish
            Column& c = columns[std::size_t(j)];
            const double part = (value(row, j) - c.mean) / (c.high - c.low);
            c.squares += w * part * part;
        }
    }
    for (int j = 0; j <= d; ++j) {
        const Column& c = columns[std::size_t(j)];
        const double deviation =
            c.low == c.high ? 0 : (c.high - c.low) * std::sqrt(c.squares / weights);
        (j < d ? scaling.x_mean[j] : *scaling.y_mean) = c.mean;
        (j < d ? scaling.x_scale[j] : *scaling.y_scale) =
            deviation > 0 && std::isfinite(deviation) ? deviation : 1;
    }
}

// The rows of a subset, standardised by its training rows.
template <class T> struct Prepared {
    std::vector<T> x[2], y[2], weight[2];
    Rows<T> rows[2];  // training, validation

    Prepared(const Table& table, const Subset& subset, const Scaling& scaling) {
        constexpr std::size_t slack = 64 / sizeof(T);
        const std::int64_t* indices[2] = {subset.train, subset.valid};
        const std::int64_t counts[2] = {subset.n_train, subset.n_valid};
        const int d = table.columns;
        for (int part = 0; part < 2; ++part) {
            const std::int64_t n = counts[part];
            x[part].resize(std::size_t(n) * std::size_t(d) + slack);
            y[part].resize(std::size_t(n));
            double total = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t row = indices[part][i];
                for (int j = 0; j < d; ++j)
                    x[part][std::size_t(i * d + j)] = input<T>(table.at(row, j), j, scaling);
                y[part][std::size_t(i)] =
                    T(standardised(table.y[row], *scaling.y_mean, *scaling.y_scale));
                total += weight_of(table, row);
            }
            if (table.weight) {
                weight[part].resize(std::size_t(n));
                for (std::int64_t i = 0; i < n; ++i)
                    weight[part][std::size_t(i)] =
                        T(table.weight[indices[part][i]] / (total / double(n)));
            }
            rows[part] = {x[part].data(), y[part].data(),
                          table.weight ? weight[part].data() : nullptr, n};
        }
    }
};

// Prepared subsets, kept for as long as a job uses them.
template <class T> class Library {
public:
    Library(const Table& table, const std::vector<Subset>& subsets,
            const std::vector<Scaling>& scalings)
        : table_(table), subsets_(subsets), scalings_(scalings), shelves_(subsets.size()) {}

    std::shared_ptr<const Prepared<T>> borrow(std::size_t s) {
        Shelf& shelf = shelves_[s];
        const std::lock_guard lock(shelf.mutex);
        auto prepared = shelf.prepared.lock();
        if (prepared) return prepared;
        const Scaling& scaling = scalings_[s];
        if (!shelf.measured) measure(table_, subsets_[s], scaling);
        shelf.measured = true;
        prepared = std::make_shared<const Prepared<T>>(table_, subsets_[s], scaling);
        shelf.prepared = prepared;
        return prepared;
    }

private:
    struct Shelf {
        std::mutex mutex;
        std::weak_ptr<const Prepared<T>> prepared;
        bool measured = false;
    };
    const Table& table_;
    const std::vector<Subset>& subsets_;
    const std::vector<Scaling>& scalings_;
    std::vector<Shelf> shelves_;
};

// Jobs whose parent is done, the one with the most work behind it first.
class Queue {
public:
    Queue(const std::vector<Job>& jobs, const std::vector<Subset>& subsets)
        : children_(jobs.size()), work_(jobs.size()), left_(jobs.size()) {
        // parents stand before their children, so one pass from the end sums the work behind a job
        for (std::size_t j = jobs.size(); j-- > 0;) {
            const Stage& stage = jobs[j].stage;
            work_[j] += double(stage.epochs) *
                        double(subsets[std::size_t(jobs[j].subset)].n_train) *
                        (stage.mode == Mode::joint ? 2 : 1);
            if (jobs[j].parent >= 0) {
                const auto parent = std::size_t(jobs[j].parent);
                children_[parent].push_back(j);
                work_[parent] = std::max(work_[parent], work_[j]);
            }
        }
        for (std::size_t j = 0; j < jobs.size(); ++j)
            if (jobs[j].parent < 0) ready_.emplace(work_[j], ~j);
    }

    // The next job, or false when none is left.
    bool next(std::size_t& job) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !ready_.empty() || left_ == 0 || stopped_; });
        if (ready_.empty() || stopped_) return false;
        job = ~ready_.top().second;
        ready_.pop();
        return true;
    }
    void done(std::size_t job) {
        const std::lock_guard lock(mutex_);
        for (const std::size_t child : children_[job]) ready_.emplace(work_[child], ~child);
        --left_;
        changed_.notify_all();
    }
    void stop() {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
    }
    // Wait at most 50 ms; true when all jobs are done or given up.
    bool wait() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::milliseconds(50),
                                 [&] { return left_ == 0 || stopped_; });
    }

private:
    std::vector<std::vector<std::size_t>> children_;
    std::vector<double> work_;
    std::priority_queue<std::pair<double, std::size_t>> ready_;  // ~job: the first of equals first
    std::size_t left_;
    bool stopped_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
};

// Run `work` on n threads; the first exception is thrown again here after all have ended.
template <class Work, class Wait> void on_threads(int n, Work work, Wait wait) {
    std::exception_ptr failure;
    std::mutex mutex;
    std::vector<std::thread> threads;
    const auto guarded = [&] {
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    try {
        for (int i = 0; i < n; ++i) threads.emplace_back(guarded);
    } catch (...) {
        if (threads.empty()) guarded();  // no thread to be had: do it here
    }
    wait();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

template <class T> const KernelsFor<T>& of_type(const Kernels& kernels) {
    if constexpr (sizeof(T) == 4)
        return kernels.single;
    else
        return kernels.precise;
}

}  // namespace

template <class T>
void train_fleet(const Kernels& kernels, const Plan& plan, const Table& table,
                 const std::vector<Subset>& subsets, const std::vector<Job>& jobs,
                 const std::vector<Scaling>& scalings, const std::vector<Result<T>>& results,
                 std::int64_t parameters, int threads, const Tick& tick) {
    Library<T> library(table, subsets, scalings);
    Queue queue(jobs, subsets);
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> steps{0};
    const Control control{&stop, &steps};
    const auto run = [&](std::size_t j) {
        const Job& job = jobs[j];
        const Result<T>& result = results[j];
        if (job.parent >= 0) {
            const Result<T>& parent = results[std::size_t(job.parent)];
            if (parent.outcome->status != Status::trained) {
                *result.outcome = {parent.outcome->status, 0, 0};
                return;
            }
            std::copy(parent.parameters, parent.parameters + parameters, result.parameters);
        }
        const auto data = library.borrow(std::size_t(job.subset));
        *result.outcome = of_type<T>(kernels).train(plan, job.stage, data->rows[0], data->rows[1],
                                                    result.parameters, result.history, control);
    };
    const auto work = [&] {
        try {
            for (std::size_t j; queue.next(j); queue.done(j)) run(j);
        } catch (...) {
            stop = true;
            queue.stop();
            throw;
        }
    };
    const auto wait = [&] {
        while (!queue.wait())
            if (!tick(steps.load())) {
                stop = true;
                queue.stop();
                return;
            }
    };
    on_threads(std::min(threads, int(jobs.size())), work, wait);
    tick(steps.load());
}

template <class T>
void predict_fleet(const Kernels& kernels, const Plan& plan, const Table& table,
                   const std::vector<const T*>& parameters, const std::vector<Scaling>& scalings,
                   int threads, double* mean, double* deviation) {
    constexpr std::int64_t piece = 4096;
    const std::int64_t pieces = (table.rows + piece - 1) / piece;
    const std::int64_t tasks = pieces * std::int64_t(parameters.size());
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        const int d = table.columns;
        std::vector<T> x(std::size_t(piece) * std::size_t(d) + 64 / sizeof(T)), m(piece), v(piece);
        for (std::int64_t task; (task = next.fetch_add(1)) < tasks;) {
            const auto network = std::size_t(task / pieces);
            const Scaling& scaling = scalings[network];
            const std::int64_t start = task % pieces * piece;
            const std::int64_t count = std::min(piece, table.rows - start);
            for (std::int64_t i = 0; i < count; ++i)
                for (int j = 0; j < d; ++j)
                    x[std::size_t(i * d + j)] = input<T>(table.at(start + i, j), j, scaling);
            of_type<T>(kernels).predict(plan, parameters[network], x.data(), count, m.data(),
                                        v.data());
            const double scale = *scaling.y_scale;
            const auto bounded = [](T z) { return std::clamp(double(z), -farthest, farthest); };
            const std::int64_t at = std::int64_t(network) * table.rows + start;
            for (std::int64_t i = 0; i < count; ++i) {
                mean[at + i] = *scaling.y_mean + scale * bounded(m[std::size_t(i)]);
                deviation[at + i] = scale * bounded(std::sqrt(v[std::size_t(i)]));
            }
        }
    };
    const int n = int(std::min<std::int64_t>(threads, tasks));
    if (n <= 1)
        work();
    else
        on_threads(n, work, [] {});
}

#define MVENET_INSTANTIATE(T)                                                                      \
    template void train_fleet<T>(const Kernels&, const Plan&, const Table&,                        \
                                 const std::vector<Subset>&, const std::vector<Job>&,              \
                                 const std::vector<Scaling>&, const std::vector<Result<T>>&,       \
                                 std::int64_t, int, const Tick&);                                  \
    template void predict_fleet<T>(const Kernels&, const Plan&, const Table&,                      \
                                   const std::vector<const T*>&, const std::vector<Scaling>&, int, \
                                   double*, double*);
MVENET_INSTANTIATE(float)
MVENET_INSTANTIATE(double)

}  // namespace mvenet
