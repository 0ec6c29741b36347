// The Python face of the engine: arrays in, arrays out.
//
// Whoever calls has validated what users gave, with words for them. But some arrays come from files
// of unknown origin: whatever could touch foreign memory, run for ever or end the process is
// checked here, or where it is read (trees.hpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

#include "ensemble.hpp"
#include "fleet.hpp"
#include "lines.hpp"
#include "threads.hpp"
#include "trees.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mvenet {
namespace {

using Matrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Square = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::vector<const Kernels*> available() {
    std::vector<const Kernels*> found;
#ifdef MVENET_X86
    __builtin_cpu_init();
#ifdef MVENET_EMULATE
    constexpr bool emulated = true;
#else
    constexpr bool emulated = false;
#endif
    if (emulated || (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")))
        found.push_back(&kernels_avx512());
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found.push_back(&kernels_avx2());
#endif
    found.push_back(&kernels_baseline());
    return found;
}

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Kernels* kernels : available()) names.emplace_back(kernels->name);
    return names;
}

// The best this processor has, or what MVENET_SIMD names.
const Kernels& chosen() {
    const auto found = available();
    const char* wanted = std::getenv("MVENET_SIMD");
    if (!wanted || !*wanted) return *found.front();
    for (const Kernels* kernels : found)
        if (wanted == std::string(kernels->name)) return *kernels;
    std::string message =
        "MVENET_SIMD=" + std::string(wanted) + " cannot be used: this processor has";
    for (const Kernels* kernels : found) message += std::string(" ") + kernels->name;
    throw std::invalid_argument(message + "; unset MVENET_SIMD or set it to one of these.");
}

template <class T> const KernelsFor<T>& of_type(const Kernels& kernels) {
    if constexpr (sizeof(T) == 4)
        return kernels.single;
    else
        return kernels.precise;
}

using Names = std::vector<std::string>;
#define MVENET_SECOND(id, name) name,
const Names activations{MVENET_ACTIVATIONS(MVENET_SECOND)};
const Names objectives{MVENET_OBJECTIVES(MVENET_SECOND)};
const Names schedules{MVENET_SCHEDULES(MVENET_SECOND)};
const Names modes{MVENET_MODES(MVENET_SECOND)};
#undef MVENET_SECOND

template <class E> E from_name(const char* kind, const std::string& name, const Names& names) {
    std::string all;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (name == names[i]) return E(i);
        all += (i ? ", " : "") + names[i];
    }
    throw std::invalid_argument(std::string(kind) + "=" + name + " is not one of " + all);
}

// Of what int numbers: such that none of their products that the engine forms leaves its type.
constexpr std::size_t most_columns = std::size_t(1) << 24;
constexpr std::int64_t most_counted = 0x7fffffff;  // rows, epochs

void check_columns(std::size_t columns) {
    if (columns > most_columns)
        throw std::invalid_argument("more than " + std::to_string(most_columns) + " columns");
}

int check_threads(int threads) {
    constexpr int most = 1024;
    if (threads < 1)
        throw std::invalid_argument("threads=" + std::to_string(threads) + " must be at least 1");
    return std::min(threads, most);
}

// Plan with the sizes it points to.
struct Settings {
    std::vector<int> mean_sizes, variance_sizes;
    Plan plan;

    Settings(std::size_t columns, std::vector<int> mean, std::vector<int> variance,
             const std::string& activation)
        : mean_sizes(std::move(mean)), variance_sizes(std::move(variance)) {
        check_columns(columns);
        for (const auto* sizes : {&mean_sizes, &variance_sizes}) {
            if (sizes->size() < 2 || sizes->back() != 1)
                throw std::invalid_argument("a network needs at least one layer and one output");
            for (std::size_t i = 0; i < sizes->size(); ++i)
                if ((*sizes)[i] < (i ? 1 : 0) || (i && (*sizes)[i] > most_units))
                    throw std::invalid_argument("a layer has " + std::to_string((*sizes)[i]) +
                                                " units, but must have 1 to " +
                                                std::to_string(most_units));
            // a constant has no inputs
            if ((*sizes)[0] != 0 && std::size_t((*sizes)[0]) != columns)
                throw std::invalid_argument("the networks' inputs are not the table's columns");
        }
        plan.inputs = int(columns);
        plan.mean = {mean_sizes.data(), int(mean_sizes.size()) - 1};
        plan.variance = {variance_sizes.data(), int(variance_sizes.size()) - 1};
        plan.activation = from_name<Activation>("activation", activation, activations);
    }

    std::int64_t parameters() const {
        std::int64_t total = 0;
        for (const auto* sizes : {&mean_sizes, &variance_sizes})
            for (std::size_t i = 1; i < sizes->size(); ++i)
                total += std::int64_t((*sizes)[i]) * ((*sizes)[i - 1] + 1);
        return total;
    }
};

Table table_of(const Matrix& x) {
    const bool is_double = x.dtype() == nb::dtype<double>();
    if (!is_double && x.dtype() != nb::dtype<float>())
        throw std::invalid_argument("x must be float64 or float32");
    check_columns(x.shape(1));
    return {x.data(),        is_double,   std::int64_t(x.shape(0)),
            int(x.shape(1)), x.stride(0), x.stride(1),
            nullptr,         nullptr};
}

// A MemoryError, with words.
class NoMemory : public std::bad_alloc {
public:
    explicit NoMemory(std::string message) : message_(std::move(message)) {}
    const char* what() const noexcept override { return message_.c_str(); }

private:
    std::string message_;
};

std::string with_commas(double n) {
    std::string digits = std::to_string(std::uint64_t(std::min(n, 1e19)));
    for (auto at = std::ptrdiff_t(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(std::size_t(at), ",");
    return digits;
}

// Refuse networks that this machine's memory cannot hold, before any is trained: systems promise
// more than they have, and end the process that asks for it.
void check_memory(const std::vector<Job>& jobs, std::int64_t parameters, int threads,
                  std::size_t number) {
#ifdef _SC_PHYS_PAGES
    // The result of each job; weights, gradients and two moments of those in work; the history.
    const auto count = double(jobs.size());
    double needed =
        double(number) * double(parameters) * (count + 4 * std::min<double>(threads, count));
    for (const Job& job : jobs) needed += 8.0 * double(job.stage.epochs);
    const double there = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE));
    if (needed > there)
        throw NoMemory(std::to_string(jobs.size()) + " trainings of networks with " +
                       with_commas(double(parameters)) + " parameters need " + with_commas(needed) +
                       " bytes, but this machine has " + with_commas(there) +
                       ": use fewer hidden units, members or penalties.");
#endif
}

// An array that Python owns.
template <class T> struct Owned {
    std::unique_ptr<T[]> memory;
    std::vector<std::size_t> shape;
    explicit Owned(std::vector<std::size_t> shape_) : shape(std::move(shape_)) {
        std::size_t n = 1;
        for (const std::size_t s : shape)
            if (__builtin_mul_overflow(n, s, &n)) throw std::bad_array_new_length();
        memory = std::make_unique_for_overwrite<T[]>(n);  // pages that nobody writes cost nothing
    }
    T* data() { return memory.get(); }
    nb::object release() {
        T* raw = memory.release();
        nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
        return nb::cast(nb::ndarray<nb::numpy, T>(raw, shape.size(), shape.data(), owner));
    }
};

using Rows64 = Vector<std::int64_t>;

void check_rows(const Rows64& rows, std::int64_t n) {
    if (std::int64_t(rows.shape(0)) > most_counted)
        throw std::invalid_argument("more than 2^31 rows");
    for (std::size_t i = 0; i < rows.shape(0); ++i)
        if (rows.data()[i] < 0 || rows.data()[i] >= n)
            throw std::invalid_argument("a subset names a row that the table does not have");
}

// Signals and progress, from a thread that holds no lock: returns false to stop.
class Watcher {
public:
    explicit Watcher(nb::object progress) : progress_(std::move(progress)) {}
    bool operator()(std::int64_t steps) {
        const nb::gil_scoped_acquire lock;
        if (failed_) return false;
        if (PyErr_CheckSignals() != 0) {
            failed_ = std::make_unique<nb::python_error>();
            return false;
        }
        if (progress_.is_none()) return true;
        try {
            progress_(steps);
        } catch (nb::python_error& error) {
            failed_ = std::make_unique<nb::python_error>(std::move(error));
            return false;
        }
        return true;
    }
    void rethrow() {
        if (failed_) throw nb::python_error(std::move(*failed_));
    }

private:
    nb::object progress_;
    std::unique_ptr<nb::python_error> failed_;
};

template <class T>
nb::dict train_as(const Settings& settings, const Table& table,
                  const std::vector<std::pair<Rows64, Rows64>>& rows, const std::vector<Job>& jobs,
                  double input_bound, int threads, bool record, const nb::object& progress) {
    const std::int64_t parameters = settings.parameters();
    check_memory(jobs, parameters, threads, sizeof(T));
    const std::size_t n_jobs = jobs.size(), n_subsets = rows.size();
    const auto columns = std::size_t(table.columns);
    Owned<T> theta({n_jobs, std::size_t(parameters)});
    Owned<double> x_mean({n_subsets, columns}), x_scale({n_subsets, columns});
    Owned<double> y_mean({n_subsets}), y_scale({n_subsets});
    std::size_t epochs = 0;
    for (const Job& job : jobs) epochs += std::size_t(job.stage.epochs);
    Owned<float> history({record ? epochs : 0, 2});
    std::vector<Outcome> outcomes(n_jobs, Outcome{Status::interrupted, 0, 0});
    std::vector<Subset> subsets;
    std::vector<Scaling> scalings;
    for (std::size_t s = 0; s < n_subsets; ++s) {
        const auto& [train, valid] = rows[s];
        subsets.push_back({train.data(), valid.data(), std::int64_t(train.shape(0)),
                           std::int64_t(valid.shape(0))});
        scalings.push_back({x_mean.data() + s * columns, x_scale.data() + s * columns,
                            y_mean.data() + s, y_scale.data() + s, input_bound});
    }
    std::vector<Result<T>> results;
    std::size_t at = 0;
    for (std::size_t j = 0; j < n_jobs; ++j) {
        results.push_back({theta.data() + std::int64_t(j) * parameters,
                           record ? history.data() + 2 * at : nullptr, &outcomes[j]});
        at += std::size_t(jobs[j].stage.epochs);
    }
    Watcher watcher(progress);
    const KernelsFor<T>& kernels = of_type<T>(chosen());
    {
        const nb::gil_scoped_release unlocked;
        train_fleet<T>(kernels, settings.plan, table, subsets, jobs, scalings, results, parameters,
                       threads, [&](std::int64_t steps) { return watcher(steps); });
    }
    watcher.rethrow();
    Owned<std::uint8_t> status({n_jobs});
    Owned<std::int64_t> epochs_run({n_jobs}), steps({n_jobs});
    for (std::size_t j = 0; j < n_jobs; ++j) {
        status.data()[j] = std::uint8_t(outcomes[j].status);
        epochs_run.data()[j] = outcomes[j].epochs;
        steps.data()[j] = outcomes[j].steps;
    }
    nb::dict out;
    out["parameters"] = theta.release();
    out["x_mean"] = x_mean.release();
    out["x_scale"] = x_scale.release();
    out["y_mean"] = y_mean.release();
    out["y_scale"] = y_scale.release();
    out["status"] = status.release();
    out["epochs"] = epochs_run.release();
    out["steps"] = steps.release();
    out["history"] = history.release();
    return out;
}

// Stairs with the numbers that they point to, from the column of each step.
class StairsOf {
public:
    StairsOf(std::size_t first, const Rows64& column, std::size_t inputs) {
        const std::size_t count = column.shape(0);
        if (count == 0 || first > inputs || count > inputs - first)
            throw std::invalid_argument("the steps do not fit the table");
        for (std::size_t s = 0; s < count; ++s) {
            if (s && column.data()[s] < column.data()[s - 1])
                throw std::invalid_argument("the steps do not follow the table's columns");
            if (s == 0 || column.data()[s] > column.data()[s - 1]) begin_.push_back(int(s));
        }
        begin_.push_back(int(count));
        stairs_ = {int(first), int(begin_.size()) - 1, begin_.data()};
    }
    StairsOf(const StairsOf&) = delete;
    StairsOf& operator=(const StairsOf&) = delete;
    const Stairs* get() const { return &stairs_; }

private:
    std::vector<int> begin_;
    Stairs stairs_;
};

nb::dict train(const Matrix& x, const Vector<double>& y,
               const std::optional<Vector<double>>& weight,
               const std::vector<std::pair<Rows64, Rows64>>& subsets, const std::vector<Job>& jobs,
               const std::vector<int>& mean_sizes, const std::vector<int>& var_sizes,
               const std::string& activation, double input_bound, const std::string& objective,
               double beta, double df, std::int64_t batch_size, double clip_value, bool precise,
               int threads, bool record_history,
               const std::optional<std::tuple<std::size_t, Rows64>>& steps,
               const nb::object& progress) {
    Settings settings(x.shape(1), mean_sizes, var_sizes, activation);
    std::optional<StairsOf> stairs;
    if (steps) {
        if (!std::isinf(input_bound))
            throw std::invalid_argument("networks of steps have no bound on their inputs");
        stairs.emplace(std::get<0>(*steps), std::get<1>(*steps), x.shape(1));
        settings.plan.stairs = stairs->get();
    }
    settings.plan.objective = from_name<Objective>("objective", objective, objectives);
    settings.plan.natural = settings.plan.objective == Objective::natural;
    settings.plan.beta = beta;
    settings.plan.df = df;
    settings.plan.batch_size = batch_size;
    settings.plan.clip_value = clip_value;
    Table table = table_of(x);
    if (std::int64_t(y.shape(0)) != table.rows ||
        (weight && std::int64_t(weight->shape(0)) != table.rows))
        throw std::invalid_argument("x, y and weight differ in length");
    threads = check_threads(threads);
    if (batch_size < 1 || batch_size > most_counted)
        throw std::invalid_argument("batch_size=" + std::to_string(batch_size) +
                                    " must be 1 to 2^31 - 1");
    table.y = y.data();
    table.weight = weight ? weight->data() : nullptr;
    for (const auto& [rows, valid] : subsets) {
        if (rows.shape(0) == 0) throw std::invalid_argument("a subset without rows");
        check_rows(rows, table.rows);
        check_rows(valid, table.rows);
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (jobs[j].subset < 0 || jobs[j].subset >= std::int64_t(subsets.size()))
            throw std::invalid_argument("a job names a subset that does not exist");
        if (jobs[j].parent >= std::int64_t(j))
            throw std::invalid_argument("a job stands before its parent");
        if (settings.plan.natural && jobs[j].stage.mode != Mode::joint)
            throw std::invalid_argument("natural parameters have no mean to train by itself");
        const std::int64_t epochs = jobs[j].stage.epochs;
        if (epochs < 0 || epochs > most_counted)
            throw std::invalid_argument("epochs=" + std::to_string(epochs) +
                                        " must be 0 to 2^31 - 1");
    }
    const auto as = precise ? train_as<double> : train_as<float>;
    return as(settings, table, subsets, jobs, input_bound, threads, record_history, progress);
}

// Networks as arrays, checked to fit together.
template <class T> class Arrays {
public:
    Arrays(const Settings& settings, std::size_t columns, const Square<T>& parameters,
           const Square<double>& x_mean, const Square<double>& x_scale,
           const Vector<double>& y_mean, const Vector<double>& y_scale, double input_bound) {
        const std::size_t k = parameters.shape(0);
        if (k == 0 || std::int64_t(parameters.shape(1)) != settings.parameters() ||
            x_mean.shape(0) != k || x_scale.shape(0) != k || y_mean.shape(0) != k ||
            y_scale.shape(0) != k || x_mean.shape(1) != columns || x_scale.shape(1) != columns)
            throw std::invalid_argument("parameters and scalings do not fit together");
        const auto mutable_of = [](const double* p) { return const_cast<double*>(p); };
        for (std::size_t i = 0; i < k; ++i) {
            theta_.push_back(parameters.data() + std::int64_t(i) * settings.parameters());
            scalings_.push_back(
                {mutable_of(x_mean.data()) + i * columns, mutable_of(x_scale.data()) + i * columns,
                 mutable_of(y_mean.data()) + i, mutable_of(y_scale.data()) + i, input_bound});
        }
    }
    Ensemble<T> ensemble() const {
        return {theta_.data(), scalings_.data(), std::int64_t(theta_.size())};
    }

private:
    std::vector<const T*> theta_;
    std::vector<Scaling> scalings_;
};

// Of a table cut into steps: center and scale of its columns; column, low end and width of each
// step; the bound of the columns.
using Steps =
    std::tuple<Vector<double>, Vector<double>, Rows64, Vector<double>, Vector<double>, double>;

// Trained networks, checked once and kept ready to predict.
template <class T> class Networks {
public:
    Networks(Square<T> parameters, Square<double> x_mean, Square<double> x_scale,
             Vector<double> y_mean, Vector<double> y_scale, const std::vector<int>& mean_sizes,
             const std::vector<int>& var_sizes, const std::string& activation, double input_bound,
             bool natural, std::optional<Steps> steps, bool last)
        : parameters_(std::move(parameters)), x_mean_(std::move(x_mean)),
          x_scale_(std::move(x_scale)), y_mean_(std::move(y_mean)), y_scale_(std::move(y_scale)),
          steps_(std::move(steps)), last_(last),
          settings_(x_mean_.shape(1), mean_sizes, var_sizes, activation),
          arrays_(settings_, x_mean_.shape(1), parameters_, x_mean_, x_scale_, y_mean_, y_scale_,
                  input_bound) {
        settings_.plan.natural = natural;
        columns_ = int(x_mean_.shape(1));
        if (!steps_ && last) throw std::invalid_argument("only networks of steps have a last one");
        if (!steps_) return;
        if (std::isfinite(input_bound))
            throw std::invalid_argument("networks of steps have no bound on their inputs");
        read_steps();
    }

    nb::tuple predict(const Matrix& x, const std::optional<Vector<double>>& last, int threads,
                      bool deviations, bool mixture, double factor) {
        Table table = table_of(x);
        if (table.columns != columns_ || bool(last) != last_ ||
            (last && std::int64_t(last->shape(0)) != table.rows))
            throw std::invalid_argument("the table is not the networks'");
        Encoding encoding = encoding_;
        if (last) encoding.last = last->data();
        if (steps_) table.encoding = &encoding;
        threads = check_threads(threads);
        const std::size_t k = parameters_.shape(0), n = x.shape(0);
        const std::vector<std::size_t> shape = mixture ? std::vector{n} : std::vector{k, n};
        Owned<double> mean(shape), deviation(deviations ? shape : std::vector<std::size_t>{0});
        const Kernels& kernels = chosen();
        {
            const nb::gil_scoped_release unlocked;
            Ensemble<T> networks = arrays_.ensemble();
            if (table.rows <= (steps_ ? few : 1)) keep(kernels, table, networks);
            predict_ensemble<T>(
                of_type<T>(kernels), settings_.plan, table, networks, threads,
                {mean.data(), deviations ? deviation.data() : nullptr, mixture, factor});
        }
        return nb::make_tuple(mean.release(), deviations ? deviation.release() : nb::none());
    }

private:
    static constexpr std::int64_t few = 64;  // rows, up to which it pays to have kept something
    static constexpr std::ptrdiff_t most = std::ptrdiff_t(64) << 20;  // bytes that are kept

    void read_steps() {
        const auto& [center, scale, column, low, width, bound] = *steps_;
        const std::size_t columns = center.shape(0), n = column.shape(0);
        if (columns + n + (last_ ? 1 : 0) != x_mean_.shape(1) || scale.shape(0) != columns ||
            low.shape(0) != n || width.shape(0) != n)
            throw std::invalid_argument("the steps do not fit the table");
        columns_ = int(columns);
        for (std::size_t s = 0; s < n; ++s)
            if (column.data()[s] < (s ? column.data()[s - 1] : 0) || column.data()[s] >= columns_)
                throw std::invalid_argument("the steps do not follow the table's columns");
        encoding_ = {center.data(), scale.data(), bound,  column.data(),
                     low.data(),    width.data(), int(n), nullptr};
    }

    // Made when few rows are asked for the first time, unless it is too large; of one instruction
    // set, which is not changed but in tests.
    void keep(const Kernels& kernels, const Table& table, Ensemble<T>& networks) {
        std::call_once(made_, [&] {
            const auto make = of_type<T>(kernels).keep;
            size_ = make(settings_.plan, networks, table, nullptr);
            const std::ptrdiff_t numbers = size_ * networks.size;
            if (numbers > most / std::ptrdiff_t(sizeof(T))) return;
            kept_.resize(std::size_t(numbers) + 64 / sizeof(T));
            make(settings_.plan, networks, table, kept_.data());
            of_ = &kernels;
        });
        if (of_ != &kernels) return;
        networks.kept = kept_.data();
        networks.kept_size = size_;
    }

    Square<T> parameters_;
    Square<double> x_mean_, x_scale_;
    Vector<double> y_mean_, y_scale_;
    std::optional<Steps> steps_;
    bool last_;
    Settings settings_;
    Arrays<T> arrays_;
    Encoding encoding_{};
    int columns_;
    std::once_flag made_;
    std::vector<T> kept_;
    std::ptrdiff_t size_ = 0;
    const Kernels* of_ = nullptr;
};

template <class T> void bind_networks(nb::module_& m, const char* name) {
    using Kept = Networks<T>;
    nb::class_<Kept>(m, name, "Trained networks, kept ready to predict.")
        .def("predict", &Kept::predict, "x"_a, "last"_a.none(), "threads"_a, "deviations"_a,
             "mixture"_a, "factor"_a);
    const auto make = [](Square<T> parameters, Square<double> x_mean, Square<double> x_scale,
                         Vector<double> y_mean, Vector<double> y_scale,
                         const std::vector<int>& mean_sizes, const std::vector<int>& var_sizes,
                         const std::string& activation, double input_bound, bool natural,
                         std::optional<Steps> steps, bool last) {
        return std::make_unique<Kept>(std::move(parameters), std::move(x_mean), std::move(x_scale),
                                      std::move(y_mean), std::move(y_scale), mean_sizes, var_sizes,
                                      activation, input_bound, natural, std::move(steps), last);
    };
    m.def("networks", make, nb::kw_only(), "parameters"_a.noconvert(), "x_mean"_a, "x_scale"_a,
          "y_mean"_a, "y_scale"_a, "mean_sizes"_a, "var_sizes"_a, "activation"_a, "input_bound"_a,
          "natural"_a, "steps"_a.none(), "last"_a);
}

template <class Feature>
nb::object predict_trees(const Matrix& x, const Vector<Feature>& feature,
                         const Vector<float>& threshold, const Vector<std::int32_t>& right,
                         const Vector<std::int64_t>& starts, int threads, bool each) {
    const Table table = table_of(x);
    threads = check_threads(threads);
    const std::size_t nodes = feature.shape(0);
    const std::int64_t trees = std::int64_t(starts.shape(0)) - 1;
    if (threshold.shape(0) != nodes || right.shape(0) != nodes)
        throw std::invalid_argument("a forest needs feature, threshold and right of each node");
    if (trees < 1 || starts(0) < 0 || starts(std::size_t(trees)) > std::int64_t(nodes) ||
        std::adjacent_find(starts.data(), starts.data() + trees + 1, std::greater_equal<>()) !=
            starts.data() + trees + 1)
        throw std::invalid_argument("a forest needs trees, one after the other");
    const Forest<Feature> forest{feature.data(), threshold.data(), right.data(), starts.data(),
                                 trees,          table.columns};
    using Shape = std::vector<std::size_t>;
    Owned<double> found(each ? Shape{std::size_t(trees), x.shape(0)} : Shape{x.shape(0)});
    {
        const nb::gil_scoped_release unlocked;
        predict_forest(forest, table, threads, each, found.data());
    }
    return found.release();
}

// Trees, one for each seed, as predict_trees takes them.
nb::object grow_trees(const Matrix& x, const Vector<double>& y,
                      const std::optional<Vector<double>>& weight,
                      const Vector<std::uint64_t>& seeds, std::int64_t drawn) {
    const Table table = table_of(x);
    const std::size_t n = x.shape(0), longest = 16;
    const bool whole = y.shape(0) == n && (!weight || weight->shape(0) == n);
    if (!whole || !n || std::int64_t(n) > most_counted || !seeds.shape(0) || drawn < 0 ||
        drawn > most_counted)
        throw std::invalid_argument("trees need as many rows of x as of y, and seeds");
    const std::size_t stride = (x.shape(1) + longest - 1) / longest * longest;
    std::vector<float> padded(n * stride);
    std::vector<Tree> trees(seeds.shape(0));
    {
        const nb::gil_scoped_release unlocked;
        constexpr double largest = 1e30;  // a difference of two is still a float
        for (std::size_t r = 0; r < n; ++r)
            for (int c = 0; c < table.columns; ++c)
                padded[r * stride + std::size_t(c)] =
                    float(std::clamp(table.at(std::int64_t(r), c), -largest, largest));
        const Sample sample{padded.data(), std::ptrdiff_t(stride),
                            table.columns, std::int64_t(n),
                            y.data(),      weight ? weight->data() : nullptr,
                            drawn};
        for (std::size_t t = 0; t < trees.size(); ++t)
            chosen().grow_tree(sample, seeds.data()[t], trees[t]);
    }
    std::size_t nodes = 0;
    for (const Tree& tree : trees) nodes += tree.feature.size();
    Owned<std::int32_t> feature({nodes}), right({nodes});
    Owned<float> threshold({nodes});
    Owned<std::int64_t> starts({trees.size() + 1});
    std::size_t at = 0;
    for (std::size_t t = 0; t < trees.size(); ++t) {
        starts.data()[t] = std::int64_t(at);
        std::copy(trees[t].feature.begin(), trees[t].feature.end(), feature.data() + at);
        std::copy(trees[t].threshold.begin(), trees[t].threshold.end(), threshold.data() + at);
        std::copy(trees[t].right.begin(), trees[t].right.end(), right.data() + at);
        at += trees[t].feature.size();
    }
    starts.data()[trees.size()] = std::int64_t(at);
    return nb::make_tuple(feature.release(), threshold.release(), right.release(),
                          starts.release());
}

nb::object predict_process(const Matrix& x, const Vector<double>& center,
                           const Vector<double>& scale, const Square<double>& points,
                           const Vector<double>& weights, const Vector<double>& polynomial,
                           const Vector<double>& slope, double intercept, int threads) {
    const Table table = table_of(x);
    threads = check_threads(threads);
    const std::size_t d = x.shape(1), m = weights.shape(0), longest = 16;
    if (center.shape(0) != d || scale.shape(0) != d || slope.shape(0) != d ||
        points.shape(0) != d || points.shape(1) != m || polynomial.shape(0) != 3)
        throw std::invalid_argument("a process of other columns or points");
    const std::size_t stride = (m + longest - 1) / longest * longest;
    std::vector<double> placed(d * stride), counted(stride);
    for (std::size_t c = 0; c < d; ++c)
        std::copy_n(points.data() + c * m, m, placed.data() + c * stride);
    std::copy_n(weights.data(), m, counted.data());
    const Process process{center.data(), scale.data(),
                          placed.data(), counted.data(),
                          slope.data(),  {polynomial(0), polynomial(1), polynomial(2)},
                          intercept,     std::ptrdiff_t(stride)};
    const Kernels& kernels = chosen();
    Owned<double> mean({x.shape(0)});
    {
        const nb::gil_scoped_release unlocked;
        in_parts(table.rows, 256, threads, [&](std::int64_t begin, std::int64_t end) {
            kernels.process(process, table, begin, end, mean.data());
        });
    }
    return mean.release();
}

// Rows of a Gaussian process, (d, rows), copied to where vectors can read beyond the last of them.
class PairsOf {
public:
    PairsOf(const Square<double>& points, const Square<double>& linear,
            const Vector<double>& amplitudes, double slope) {
        const std::size_t d = points.shape(0), n = points.shape(1), longest = 16;
        if (d > most_columns || linear.shape(0) != n || linear.shape(1) != n ||
            amplitudes.shape(0) != 3)
            throw std::invalid_argument("a process of other rows or kernels");
        const std::size_t stride = (n + longest - 1) / longest * longest;
        placed_.resize(d * stride);
        for (std::size_t c = 0; c < d; ++c)
            std::copy_n(points.data() + c * n, n, placed_.data() + c * stride);
        pairs = {placed_.data(),
                 linear.data(),
                 int(d),
                 std::int64_t(n),
                 std::ptrdiff_t(stride),
                 {amplitudes(0), amplitudes(1), amplitudes(2)},
                 slope};
    }
    Pairs pairs;

private:
    std::vector<double> placed_;
};

nb::object covariances(const Square<double>& points, const Square<double>& linear,
                       const Vector<double>& amplitudes, double slope) {
    const PairsOf given(points, linear, amplitudes, slope);
    Owned<double> found({points.shape(1), points.shape(1)});
    const Kernels& kernels = chosen();
    {
        const nb::gil_scoped_release unlocked;
        kernels.covariances(given.pairs, found.data());
    }
    return found.release();
}

nb::object pair_sums(const Square<double>& points, const Square<double>& linear,
                     const Vector<double>& amplitudes, const Square<double>& factor,
                     const Vector<double>& t) {
    const PairsOf given(points, linear, amplitudes, 0.0);
    const std::size_t n = points.shape(1);
    if (factor.shape(0) != n || factor.shape(1) != n || t.shape(0) != n)
        throw std::invalid_argument("a process of other rows or kernels");
    Owned<double> sums({points.shape(0) + 4}), alpha({n}), diagonal({n});
    const Kernels& kernels = chosen();
    {
        const nb::gil_scoped_release unlocked;
        kernels.pair_sums(given.pairs, factor.data(), t.data(), alpha.data(), diagonal.data(),
                          sums.data());
    }
    return nb::make_tuple(sums.release(), alpha.release(), diagonal.release());
}

// One weight for each member, or one for each member and row.
Mixtures mixtures_of(const Square<double>& means, const Square<double>& stds,
                     const Square<double>& weights) {
    const std::size_t members = weights.shape(0), rows = means.shape(1);
    const bool by_row = weights.shape(1) != 1;
    if (means.shape(0) != members || stds.shape(0) != members || stds.shape(1) != rows ||
        (by_row && weights.shape(1) != rows) || !members)
        throw std::invalid_argument("a mean, a deviation and a weight for each member");
    return {means.data(),          stds.data(),        weights.data(),
            std::int64_t(members), std::int64_t(rows), by_row};
}

nb::object quantiles(const Square<double>& means, const Square<double>& stds,
                     const Square<double>& weights, double mass, double sign, double probit) {
    const std::size_t rows = means.shape(1);
    const Mixtures mixtures = mixtures_of(means, stds, weights);
    const Kernels& kernels = chosen();
    Owned<double> found({rows});
    {
        const nb::gil_scoped_release unlocked;
        kernels.quantiles(mixtures, mass, sign, probit, found.data());
    }
    return found.release();
}

nb::object probabilities(const Square<double>& means, const Square<double>& stds,
                         const Square<double>& weights, const Square<double>& places, double sign) {
    const Mixtures mixtures = mixtures_of(means, stds, weights);
    const bool by_row = places.shape(1) != 1;
    if (by_row && places.shape(1) != means.shape(1))
        throw std::invalid_argument("places must be the same for all rows, or one for each row");
    const Kernels& kernels = chosen();
    Owned<double> found({places.shape(0), means.shape(1)});
    {
        const nb::gil_scoped_release unlocked;
        kernels.probabilities(mixtures, places.data(), std::int64_t(places.shape(0)), by_row, sign,
                              found.data());
    }
    return found.release();
}

nb::object shares_below(const Square<double>& means, const Square<double>& stds,
                        const Square<double>& weights, const Vector<double>& places) {
    const Mixtures mixtures = mixtures_of(means, stds, weights);
    const Kernels& kernels = chosen();
    Owned<float> found({places.shape(0), means.shape(1)});
    {
        const nb::gil_scoped_release unlocked;
        kernels.shares_below(mixtures, places.data(), std::int64_t(places.shape(0)), found.data());
    }
    return found.release();
}

nb::object partials(const Square<double>& means, const Square<double>& stds,
                    const Square<double>& weights, const Square<double>& cells,
                    const Vector<double>& origin) {
    const Mixtures mixtures = mixtures_of(means, stds, weights);
    if (cells.shape(1) != 2) throw std::invalid_argument("a cell has two ends");
    if (origin.shape(0) != means.shape(1))
        throw std::invalid_argument("origin must have one place for each row");
    const Kernels& kernels = chosen();
    Owned<double> found({3, cells.shape(0), means.shape(1)});
    {
        const nb::gil_scoped_release unlocked;
        kernels.partials(mixtures, cells.data(), std::int64_t(cells.shape(0)), origin.data(),
                         found.data());
    }
    return found.release();
}

nb::object moments(const Square<double>& means, const Square<double>& stds,
                   const Square<double>& weights) {
    const Mixtures mixtures = mixtures_of(means, stds, weights);
    const Kernels& kernels = chosen();
    Owned<double> found({2, means.shape(1)});
    {
        const nb::gil_scoped_release unlocked;
        kernels.moments(mixtures, found.data());
    }
    return found.release();
}

nb::object crps(const Square<double>& means, const Square<double>& stds,
                const Square<double>& weights, const Vector<double>& y) {
    const Mixtures mixtures = mixtures_of(means, stds, weights);
    if (y.shape(0) != means.shape(1))
        throw std::invalid_argument("y must have one outcome for each row");
    const Kernels& kernels = chosen();
    Owned<double> found({y.shape(0)});
    {
        const nb::gil_scoped_release unlocked;
        kernels.crps(mixtures, y.data(), found.data());
    }
    return found.release();
}

std::size_t lines(const nb::bytes& text) {
    const std::string_view all(text.c_str(), text.size());
    const nb::gil_scoped_release unlocked;
    return count_lines(all);
}

nb::bytes side_by_side(const nb::bytes& left, const nb::bytes& right, char separator) {
    const std::string_view first(left.c_str(), left.size()), second(right.c_str(), right.size());
    const std::size_t size = size_side_by_side(first, second);
    auto made = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(size)));
    if (!made.is_valid()) nb::raise_python_error();
    char* out = PyBytes_AsString(made.ptr());
    {
        const nb::gil_scoped_release unlocked;
        put_side_by_side(first, second, separator, out);
    }
    return made;
}

Job make_job(const std::string& mode, std::int64_t subset, std::int64_t parent, std::uint64_t seed,
             std::int64_t epochs, double learning_rate, const std::string& schedule,
             double reg_mean, double reg_var, bool init_var_bias, std::int64_t patience,
             std::int64_t window) {
    Job job;
    job.subset = subset;
    job.parent = parent;
    job.stage.mode = from_name<Mode>("mode", mode, modes);
    job.stage.fresh = parent < 0;
    job.stage.init_var_bias = init_var_bias;
    job.stage.schedule = from_name<Schedule>("schedule", schedule, schedules);
    job.stage.seed = seed;
    job.stage.epochs = epochs;
    job.stage.patience = patience;
    job.stage.window = window;
    job.stage.learning_rate = learning_rate;
    job.stage.reg_mean = reg_mean;
    job.stage.reg_var = reg_var;
    return job;
}

}  // namespace
}  // namespace mvenet

NB_MODULE(_engine, m) {
    using namespace mvenet;
    m.doc() = "The native engine of mvenet: it knows arrays only.";
    nb::set_leak_warnings(false);  // a model that lives until the process ends is none
    nb::class_<Job>(m, "Job", "One stage of one network on one subset of the rows.")
        .def(nb::new_(&make_job), nb::kw_only(), "mode"_a, "subset"_a, "parent"_a, "seed"_a,
             "epochs"_a, "learning_rate"_a, "schedule"_a, "reg_mean"_a, "reg_var"_a,
             "init_var_bias"_a, "patience"_a, "window"_a);
    m.def("train", &train, nb::kw_only(), "x"_a, "y"_a, "weight"_a.none(), "subsets"_a, "jobs"_a,
          "mean_sizes"_a, "var_sizes"_a, "activation"_a, "input_bound"_a, "objective"_a, "beta"_a,
          "df"_a, "batch_size"_a, "clip_value"_a, "precise"_a, "threads"_a, "record_history"_a,
          "steps"_a.none() = nb::none(), "progress"_a.none());
    bind_networks<float>(m, "Networks");
    bind_networks<double>(m, "PreciseNetworks");
    m.def("predict_trees", &predict_trees<std::int16_t>, nb::kw_only(), "x"_a,
          "feature"_a.noconvert(), "threshold"_a, "right"_a, "starts"_a, "threads"_a,
          "each"_a = false);
    m.def("predict_trees", &predict_trees<std::int32_t>, nb::kw_only(), "x"_a,
          "feature"_a.noconvert(), "threshold"_a, "right"_a, "starts"_a, "threads"_a,
          "each"_a = false);
    m.def("grow_trees", &grow_trees, nb::kw_only(), "x"_a, "y"_a, "weight"_a.none(), "seeds"_a,
          "drawn"_a, "Extremely randomised trees: feature, threshold, right and starts.");
    m.def("predict_process", &predict_process, nb::kw_only(), "x"_a, "center"_a, "scale"_a,
          "points"_a, "weights"_a, "polynomial"_a, "slope"_a, "intercept"_a, "threads"_a);
    m.def("covariances", &covariances, nb::kw_only(), "points"_a, "linear"_a, "amplitudes"_a,
          "slope"_a, "Lower triangle of the covariances of a Gaussian process's rows.");
    m.def("pair_sums", &pair_sums, nb::kw_only(), "points"_a, "linear"_a, "amplitudes"_a,
          "factor"_a, "t"_a, "What all pairs of rows say about the scales of a Gaussian process.");
    m.def("quantiles", &quantiles, nb::kw_only(), "means"_a, "stds"_a, "weights"_a, "mass"_a,
          "sign"_a, "probit"_a, "Quantiles of mixtures of normals.");
    m.def("probabilities", &probabilities, nb::kw_only(), "means"_a, "stds"_a, "weights"_a,
          "places"_a, "sign"_a,
          "Probability below each of the places, or above, of mixtures of normals.");
    m.def("shares_below", &shares_below, nb::kw_only(), "means"_a, "stds"_a, "weights"_a,
          "places"_a, "Probability below each of the places, to six decimals.");
    m.def("partials", &partials, nb::kw_only(), "means"_a, "stds"_a, "weights"_a, "cells"_a,
          "origin"_a, "Probability and two moments within cells, of mixtures of normals.");
    m.def("moments", &moments, nb::kw_only(), "means"_a, "stds"_a, "weights"_a,
          "Means and standard deviations of mixtures of normals.");
    m.def("crps", &crps, nb::kw_only(), "means"_a, "stds"_a, "weights"_a, "y"_a,
          "Continuous ranked probability scores of mixtures of normals.");
    m.def("count_lines", &lines, "text"_a,
          "Lines of a text, the last one with or without its end.");
    m.def("side_by_side", &side_by_side, "left"_a, "right"_a, "separator"_a,
          "Lines of text, each followed by one of another text, which ends in a line end.");
    m.def("activations", [] { return activations; }, "Names of the activations.");
    m.def("objectives", [] { return objectives; }, "Names of the objectives.");
    m.def("schedules", [] { return schedules; }, "Names of the schedules of the learning rate.");
    m.def("instruction_sets", &instruction_sets, "What this processor can run, best first.");
    m.def("instruction_set", [] { return std::string(chosen().name); }, "What is used now.");
}
