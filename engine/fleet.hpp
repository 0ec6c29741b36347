// Many networks on a few threads.
//
// A fleet is a list of jobs; a job is one stage of one network on one subset of the rows. A job may
// start from the result of another (its parent): that is how one warm-up serves many networks. Each
// job is run from start to end by one thread, the longest first, so nothing depends on how many
// threads there are or which jobs go side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernel.hpp"

namespace mvenet {

struct Job {
    Stage stage;
    std::int64_t subset = 0;
    std::int64_t parent = -1;
};

// The caller's table, in either memory order.
struct Table {
    const void* x;
    bool is_double;
    std::int64_t rows;
    int columns;
    std::ptrdiff_t row_stride, column_stride;  // in numbers
    const double* y;
    const double* weight;  // or null

    double at(std::int64_t row, int column) const {
        const std::ptrdiff_t i = row * row_stride + column * column_stride;
        return is_double ? static_cast<const double*>(x)[i]
                         : double(static_cast<const float*>(x)[i]);
    }
};

struct Subset {
    const std::int64_t *train, *valid;
    std::int64_t n_train, n_valid;
};

// Where the statistics of a subset go: columns numbers each, and one. Standardised inputs z are
// bent to z / sqrt(1 + (z / bound)^2), which stays within the bound; infinity leaves them alone.
struct Scaling {
    double *x_mean, *x_scale, *y_mean, *y_scale;
    double bound;
};

// Where the result of a job goes; history has room for two numbers an epoch, or is null.
template <class T> struct Result {
    T* parameters;
    float* history;
    Outcome* outcome;
};

// Called about twenty times a second by the calling thread with the gradient steps done so far;
// returns false to stop the fleet.
using Tick = std::function<bool(std::int64_t)>;

template <class T>
void train_fleet(const Kernels& kernels, const Plan& plan, const Table& table,
                 const std::vector<Subset>& subsets, const std::vector<Job>& jobs,
                 const std::vector<Scaling>& scalings, const std::vector<Result<T>>& results,
                 std::int64_t parameters, int threads, const Tick& tick);

// mean and standard deviation [network][row], in units of y.
template <class T>
void predict_fleet(const Kernels& kernels, const Plan& plan, const Table& table,
                   const std::vector<const T*>& parameters, const std::vector<Scaling>& scalings,
                   int threads, double* mean, double* deviation);

}  // namespace mvenet
