// What an ensemble of trained networks says of the rows of a table, on a few threads: of each
// network for itself, or of their mixture.
#pragma once

#include <cstdint>

#include "kernel.hpp"

namespace mvenet {

// Where predictions go, in units of y. Of each network: mean[network][row]. Or the moments of
// their mixture: mean[row].
struct Answer {
    double* mean;
    double* deviation;  // or null: not wanted
    bool mixture = false;
    double factor = 1;  // on every member's deviation, in a mixture
};

template <class T>
void predict_ensemble(const KernelsFor<T>& kernels, const Plan& plan, const Table& table,
                      const Ensemble<T>& networks, int threads, const Answer& answer);

}  // namespace mvenet
