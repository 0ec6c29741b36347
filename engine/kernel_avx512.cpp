// The arithmetic compiled for AVX-512: 512-bit vectors, 32 registers.
#define MVENET_ISA avx512
#define MVENET_VECTOR_BYTES 64
#define MVENET_REGISTERS 32
#include "kernels.inc.hpp"

namespace mvenet {

const Kernels& kernels_avx512() {
    static constexpr Kernels kernels{
        "avx512",
        {avx512::train<float>, avx512::measure, avx512::standardise<float>, avx512::predict<float>,
         avx512::keep<float>},
        {avx512::train<double>, avx512::measure, avx512::standardise<double>,
         avx512::predict<double>, avx512::keep<double>},
        avx512::predict_process,
        avx512::covariances,
        avx512::pair_sums,
        avx512::quantiles,
        avx512::probabilities,
        avx512::shares_below,
        avx512::crps,
        avx512::partials,
        avx512::moments,
        avx512::grow_tree};
    return kernels;
}

}  // namespace mvenet
