// Many networks on a few threads.
//
// A fleet is a list of jobs; a job is one stage of one network on one subset of the rows. A job may
// start from the result of another (its parent): that is how one warm-up serves many networks. Each
// job is run from start to end by one thread, the longest first; threads for which no job is left
// help with the others (crew.hpp). Nothing depends on how many threads there are or which jobs go
// side by side.
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

struct Subset {
    const std::int64_t *train, *valid;
    std::int64_t n_train, n_valid;
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
void train_fleet(const KernelsFor<T>& kernels, const Plan& plan, const Table& table,
                 const std::vector<Subset>& subsets, const std::vector<Job>& jobs,
                 const std::vector<Scaling>& scalings, const std::vector<Result<T>>& results,
                 std::int64_t parameters, int threads, const Tick& tick);

}  // namespace mvenet
