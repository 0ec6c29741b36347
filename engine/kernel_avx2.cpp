// The arithmetic compiled for AVX2 with fused multiply-add: 256-bit vectors, 16 registers.
#define MVENET_ISA avx2
#define MVENET_VECTOR_BYTES 32
#define MVENET_REGISTERS 16
#include "kernels.inc.hpp"

namespace mvenet {

const Kernels& kernels_avx2() {
    static constexpr Kernels kernels{"avx2",
                                     {avx2::train<float>, avx2::measure, avx2::standardise<float>,
                                      avx2::predict<float>, avx2::keep<float>},
                                     {avx2::train<double>, avx2::measure, avx2::standardise<double>,
                                      avx2::predict<double>, avx2::keep<double>},
                                     avx2::predict_process,
                                     avx2::covariances,
                                     avx2::pair_sums,
                                     avx2::quantiles,
                                     avx2::probabilities,
                                     avx2::shares_below,
                                     avx2::crps,
                                     avx2::partials,
                                     avx2::moments,
                                     avx2::grow_tree};
    return kernels;
}

}  // namespace mvenet
