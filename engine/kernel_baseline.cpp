// The arithmetic compiled for the least that every processor of this kind has: 128-bit vectors
// (SSE2, NEON).
#define MVENET_ISA baseline
#define MVENET_VECTOR_BYTES 16
#ifdef __aarch64__
#define MVENET_REGISTERS 32
#else
#define MVENET_REGISTERS 16
#endif
#include "kernels.inc.hpp"

namespace mvenet {

const Kernels& kernels_baseline() {
    static constexpr Kernels kernels{
        "baseline",
        {baseline::train<float>, baseline::measure, baseline::standardise<float>,
         baseline::predict<float>, baseline::keep<float>},
        {baseline::train<double>, baseline::measure, baseline::standardise<double>,
         baseline::predict<double>, baseline::keep<double>},
        baseline::predict_process,
        baseline::covariances,
        baseline::pair_sums,
        baseline::quantiles,
        baseline::probabilities,
        baseline::shares_below,
        baseline::crps,
        baseline::partials,
        baseline::moments,
        baseline::grow_tree};
    return kernels;
}

}  // namespace mvenet
