#include "fleet.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "crew.hpp"
#include "threads.hpp"
#include "tiny.hpp"

namespace mvenet {
namespace {

constexpr std::int64_t stretch = 8192;  // rows between two looks at whether to stop

double weight_of(const Table& table, std::int64_t row) {
    return table.weight ? table.weight[row] : 1.0;
}

// Memory for a table: not zeroed first, and in large pages where the system has them, because rows
// are read in random order.
template <class T> class Pages {
public:
    void resize(std::size_t n) {
        constexpr std::size_t slack = 64 / sizeof(T);  // vectors are read past the end
        constexpr std::size_t page = std::size_t(1) << 21;
        const std::size_t bytes = (n + slack) * sizeof(T);
        const std::size_t line = bytes < 4 * page ? 64 : page;
        memory_.reset(static_cast<T*>(::operator new(bytes, std::align_val_t{line})));
        memory_.get_deleter().line = line;
#ifdef MADV_HUGEPAGE
        if (line == page) madvise(memory_.get(), bytes, MADV_HUGEPAGE);
#endif
        std::fill_n(memory_.get() + n, slack, T(0));
    }
    T* data() const { return memory_.get(); }

private:
    struct Delete {
        std::size_t line = 64;
        void operator()(T* p) const { ::operator delete(p, std::align_val_t{line}); }
    };
    std::unique_ptr<T, Delete> memory_;
};

// Tables larger than this are not copied for a subset: the rows are standardised when needed.
constexpr std::int64_t largest_copy = 64 << 20;  // bytes

// The rows of a subset, standardised by its training rows; half done if `stop` is set.
template <class T> struct Prepared {
    Pages<T> pages[2];  // a row's inputs, its target, its weight: they are needed together
    Pages<std::int32_t> stairs[2];
    std::vector<T> ends;
    Rows<T> rows[2];  // training, validation

    Prepared(const KernelsFor<T>& kernels, const Table& table, const Subset& subset,
             const Scaling& scaling, const Stairs* steps, const std::atomic<bool>& stop) {
        const std::int64_t* indices[2] = {subset.train, subset.valid};
        const std::int64_t counts[2] = {subset.n_train, subset.n_valid};
        for (int part = 0; part < 2; ++part) {
            const std::int64_t n = counts[part];
            if (steps) {
                with_stairs(kernels, table, indices[part], n, scaling, *steps, part, stop);
                continue;
            }
            if (in_place(table, n)) {
                rows[part].n = n;
                rows[part].table = &table;
                rows[part].scaling = &scaling;
                rows[part].index = all_of_them(indices[part], n) ? nullptr : indices[part];
                double total = 0;
                for (std::int64_t i = 0; table.weight && i < n; ++i)
                    total += weight_of(table, indices[part][i]);
                if (table.weight) rows[part].mean_weight = total / double(n);
                continue;
            }
            const std::ptrdiff_t stride = stride_of(table, n);
            pages[part].resize(std::size_t(n * stride));
            T* const x = pages[part].data();
            T* const y = x + table.columns;
            T* const weight = table.weight ? y + 1 : nullptr;
            double total = 0;
            for (std::int64_t at = 0; at < n && !stop; at += stretch) {
                const std::int64_t end = std::min(at + stretch, n);
                kernels.standardise(table, scaling, indices[part] + at, 0, end - at,
                                    x + at * stride, stride);
                for (std::int64_t i = at; i < end; ++i) {
                    const std::int64_t row = indices[part][i];
                    const double z = (table.y[row] - *scaling.y_mean) / *scaling.y_scale;
                    y[i * stride] = T(std::clamp(z, -farthest, farthest));
                    total += weight_of(table, row);
                }
            }
            for (std::int64_t i = 0; weight && i < n; ++i)
                weight[i * stride] = T(table.weight[indices[part][i]] / (total / double(n)));
            rows[part] = {.x = x, .y = y, .weight = weight, .stride = stride, .n = n};
        }
    }

    // Rows of which some inputs are steps: the others, and where the row stands.
    void with_stairs(const KernelsFor<T>& kernels, const Table& table, const std::int64_t* index,
                     std::int64_t n, const Scaling& scaling, const Stairs& steps, int part,
                     const std::atomic<bool>& stop) {
        constexpr std::int64_t some = 64;
        const int d = table.columns, c = steps.columns, count = steps.begin[c], others = d - count;
        const std::ptrdiff_t stride = others + c + (table.weight ? 2 : 1);
        pages[part].resize(std::size_t(n * stride));
        stairs[part].resize(std::size_t(n * c));
        std::vector<T> dense(std::size_t(some * d) + 64 / sizeof(T));
        double total = 0;
        for (std::int64_t i = 0; table.weight && i < n; ++i) total += table.weight[index[i]];
        for (std::int64_t at = 0; at < n && !stop; at += some) {
            const std::int64_t here = std::min(some, n - at);
            kernels.standardise(table, scaling, index + at, 0, here, dense.data(), d);
            for (std::int64_t i = 0; i < here; ++i) {
                const std::int64_t row = index[at + i];
                const T* const from = dense.data() + i * d;
                T* to = pages[part].data() + (at + i) * stride;
                to = std::copy(from, from + steps.first, to);
                to = std::copy(from + steps.first + count, from + d, to);
                std::int32_t* const stair = stairs[part].data() + (at + i) * c;
                for (int g = 0; g < c; ++g) stair[g] = stand(table, row, steps, g, *to++);
                *to++ = T(std::clamp((table.y[row] - *scaling.y_mean) / *scaling.y_scale, -farthest,
                                     farthest));
                if (table.weight) *to = T(table.weight[row] / (total / double(n)));
            }
        }
        ends.resize(std::size_t(2 * count));
        for (int s = 0; s < count; ++s) {
            const double mean = scaling.x_mean[steps.first + s];
            const double scale = scaling.x_scale[steps.first + s];
            const double zero = std::clamp(-mean / scale, -farthest, farthest);
            ends[std::size_t(2 * s)] = T(zero);
            ends[std::size_t(2 * s + 1)] =
                T(std::clamp((1 - mean) / scale, -farthest, farthest) - zero);
        }
        T* const x = pages[part].data();
        rows[part].x = x;
        rows[part].y = x + others + c;
        rows[part].weight = table.weight ? rows[part].y + 1 : nullptr;
        rows[part].stride = stride;
        rows[part].n = n;
        rows[part].stair = stairs[part].data();
        rows[part].ends = ends.data();
    }

    // The stair of column g that a row stands on or above, and how far above it.
    static std::int32_t stand(const Table& table, std::int64_t row, const Stairs& steps, int g,
                              T& above) {
        const int from = steps.begin[g], last = steps.begin[g + 1] - 1;
        const auto value = [&](int s) { return table.at(row, steps.first + s); };
        int s = from;
        while (s < last && value(s) == 1) ++s;
        above = T(value(s));
        bool steady = value(s) >= 0 && value(s) <= 1;
        for (int after = s + 1; after <= last; ++after) steady = steady && value(after) == 0;
        if (!steady)
            throw std::invalid_argument("row " + std::to_string(row) +
                                        " of x has inputs that are no steps");
        return s + g;
    }

    // Of a table that is not large up to a quarter more, if then no row reaches into more lines of
    // the cache than it must.
    static std::ptrdiff_t stride_of(const Table& table, std::int64_t n) {
        constexpr int line = 64 / int(sizeof(T));
        const std::ptrdiff_t least = table.columns + (table.weight ? 2 : 1);
        std::ptrdiff_t whole = 1;
        while (whole < least) whole += std::min<std::ptrdiff_t>(whole, line);
        const bool large = n * whole * std::int64_t(sizeof(T)) > largest_copy;
        return !large && whole <= least + least / 4 ? whole : least;
    }
    static bool all_of_them(const std::int64_t* index, std::int64_t n) {
        std::int64_t i = 0;
        while (i < n && index[i] == i) ++i;
        return i == n;
    }
    static bool in_place(const Table& table, std::int64_t n) {
        return table.column_stride == 1 &&
               n * table.columns * std::int64_t(sizeof(T)) > largest_copy;
    }
};

// Prepared subsets, kept for as long as a job uses them.
template <class T> class Library {
public:
    Library(const KernelsFor<T>& kernels, const Table& table, const std::vector<Subset>& subsets,
            const std::vector<Scaling>& scalings, const Stairs* stairs,
            const std::atomic<bool>& stop)
        : kernels_(kernels), table_(table), subsets_(subsets), scalings_(scalings), stairs_(stairs),
          stop_(stop), shelves_(subsets.size()) {}

    std::shared_ptr<const Prepared<T>> borrow(std::size_t s) {
        Shelf& shelf = shelves_[s];
        const std::lock_guard lock(shelf.mutex);
        auto prepared = shelf.prepared.lock();
        if (prepared) return prepared;
        const Scaling& scaling = scalings_[s];
        if (!shelf.measured)
            kernels_.measure(table_, subsets_[s].train, subsets_[s].n_train, scaling, stop_);
        shelf.measured = true;
        prepared = std::make_shared<const Prepared<T>>(kernels_, table_, subsets_[s], scaling,
                                                       stairs_, stop_);
        shelf.prepared = prepared;
        return prepared;
    }

private:
    struct Shelf {
        std::mutex mutex;
        std::weak_ptr<const Prepared<T>> prepared;
        bool measured = false;
    };
    const KernelsFor<T>& kernels_;
    const Table& table_;
    const std::vector<Subset>& subsets_;
    const std::vector<Scaling>& scalings_;
    const Stairs* stairs_;
    const std::atomic<bool>& stop_;
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

    enum class Next { job, nothing_yet, end };

    // The next job if there is one now. `news` changes whenever it is worth asking again.
    Next next(std::size_t& job, std::uint64_t& news) {
        const std::lock_guard lock(mutex_);
        news = news_;
        if (left_ == 0 || stopped_) return Next::end;
        if (ready_.empty()) return Next::nothing_yet;
        job = ~ready_.top().second;
        ready_.pop();
        return Next::job;
    }
    void done(std::size_t job) {
        const std::lock_guard lock(mutex_);
        for (const std::size_t child : children_[job]) ready_.emplace(work_[child], ~child);
        --left_;
        announce();
    }
    void stop() {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        announce();
    }
    std::uint64_t news() const { return news_.load(std::memory_order_relaxed); }
    void wait_for_news(std::uint64_t old) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return news_ != old; });
    }
    void tell() {
        const std::lock_guard lock(mutex_);
        announce();
    }
    // Wait at most 50 ms; true when all jobs are done or given up.
    bool wait() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::milliseconds(50),
                                 [&] { return left_ == 0 || stopped_; });
    }

private:
    void announce() {
        ++news_;
        changed_.notify_all();
    }

    std::vector<std::vector<std::size_t>> children_;
    std::vector<double> work_;
    std::priority_queue<std::pair<double, std::size_t>> ready_;  // ~job: the first of equals first
    std::size_t left_;
    bool stopped_ = false;
    std::atomic<std::uint64_t> news_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
};

// The threads of a fleet: each has a gang, which it leads while it trains a network.
class Workshop {
public:
    Workshop(Queue& queue, int threads, int crew) : queue_(queue), crew_(crew) {
        for (int i = 0; i < threads; ++i) benches_.emplace_back(crew);
    }

    // What one thread does: jobs while there are some, then help with those of others.
    template <class Run> void work(std::size_t me, Run run) {
        std::uint64_t news = 0;
        for (std::size_t job;;) {
            switch (queue_.next(job, news)) {
                case Queue::Next::end: return;
                case Queue::Next::job:
                    lead(me, true);
                    run(job, crew_ > 1 ? benches_[me].gang.crew() : nullptr);
                    lead(me, false);
                    queue_.done(job);
                    wake();
                    break;
                case Queue::Next::nothing_yet:
                    if (Gang* gang = crew_ > 1 ? neediest() : nullptr) {
                        const TinyIsZero tiny_is_zero;
                        gang->help([&] { return queue_.news() != news; });
                    } else {
                        queue_.wait_for_news(news);
                    }
            }
        }
    }
    void stop() {
        queue_.stop();
        wake();
    }

private:
    struct Bench {
        explicit Bench(int crew) : gang(crew) {}
        Gang gang;
        std::atomic<bool> leads{false};
    };

    void lead(std::size_t me, bool leads) {
        if (crew_ == 1) return;
        benches_[me].leads = leads;
        if (!leads) return;
        queue_.tell();
        wake();
    }
    void wake() {
        for (Bench& bench : benches_) bench.gang.wake();
    }
    // A gang with room, the smallest first.
    Gang* neediest() {
        Gang* found = nullptr;
        for (Bench& bench : benches_)
            if (bench.leads && bench.gang.members() + 1 < crew_ &&
                (!found || bench.gang.members() < found->members()))
                found = &bench.gang;
        return found;
    }

    Queue& queue_;
    int crew_;
    std::deque<Bench> benches_;
};

// Multiply-adds of one gradient step.
double step_work(const Plan& plan, std::int64_t rows) {
    double work = 0;
    for (const Shape* shape : {&plan.mean, &plan.variance})
        for (int l = 0; l < shape->layers; ++l) work += 3.0 * shape->sizes[l] * shape->sizes[l + 1];
    return work * double(std::min(plan.batch_size, rows));
}

}  // namespace

template <class T>
void train_fleet(const KernelsFor<T>& kernels, const Plan& plan, const Table& table,
                 const std::vector<Subset>& subsets, const std::vector<Job>& jobs,
                 const std::vector<Scaling>& scalings, const std::vector<Result<T>>& results,
                 std::int64_t parameters, int threads, const Tick& tick) {
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> steps{0};
    Library<T> library(kernels, table, subsets, scalings, plan.stairs, stop);
    Queue queue(jobs, subsets);
    // A thread more for each million of multiply-adds: below that they would wait for each other.
    std::int64_t rows = 0;
    for (const Subset& subset : subsets) rows = std::max(rows, subset.n_train);
    const double most = 1 + step_work(plan, rows) / 1e6;
    const int crew = most < threads ? int(most) : threads;
    const auto useful = std::int64_t(jobs.size()) * crew;
    if (useful < threads) threads = int(useful);
    Workshop workshop(queue, threads, crew);
    const auto run = [&](std::size_t j, Crew* helpers) {
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
        if (stop) return;
        const TinyIsZero tiny_is_zero;
        *result.outcome =
            kernels.train(plan, job.stage, data->rows[0], data->rows[1], result.parameters,
                          result.history, {&stop, &steps, helpers});
    };
    const auto give_up = [&] {
        stop = true;
        workshop.stop();
    };
    const auto work = [&](int i) {
        try {
            workshop.work(std::size_t(i), run);
        } catch (...) {
            give_up();
            throw;
        }
    };
    const auto watch = [&](int started) {
        if (started == 0) return work(0);  // no thread to be had: do it here
        try {
            while (!queue.wait())
                if (!tick(steps.load())) return give_up();
        } catch (...) {
            give_up();
            throw;
        }
    };
    on_threads(threads, work, watch);
    tick(steps.load());
}

#define MVENET_INSTANTIATE(T)                                                                \
    template void train_fleet<T>(const KernelsFor<T>&, const Plan&, const Table&,            \
                                 const std::vector<Subset>&, const std::vector<Job>&,        \
                                 const std::vector<Scaling>&, const std::vector<Result<T>>&, \
                                 std::int64_t, int, const Tick&);
MVENET_INSTANTIATE(float)
MVENET_INSTANTIATE(double)

}  // namespace mvenet
