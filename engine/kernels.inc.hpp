// Included once by each kernel_*.cpp, which says for which instruction set.
#include <time.h>

#include "measure.hpp"
#include "predictor.hpp"
#include "process.hpp"
#include "quantile.hpp"
#include "trainer.hpp"

namespace mvenet::MVENET_ISA {

// Fused multiply-adds in as many independent chains as a tile has sums; FLOP/s of the time that
// this thread had a core, so that a busy neighbour does not count.
static double peak(double seconds) {
    constexpr int chains = MVENET_REGISTERS == 32 ? 24 : 12;
    const auto now = [] {
        timespec t;
#ifdef CLOCK_THREAD_CPUTIME_ID
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
#else
        timespec_get(&t, TIME_UTC);  // Windows: pauses included
#endif
        return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
    };
    Vec<float> sum[chains];
    for (int c = 0; c < chains; ++c) sum[c] = splat<float>(float(c) * 1e-3f);
    const Vec<float> factor = splat<float>(0.999f), offset = splat<float>(1e-3f);
    const double start = now();
    double elapsed = 0, done = 0;
    while (elapsed < seconds) {
        constexpr int rounds = 20000;
        for (int i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
            for (int c = 0; c < chains; ++c) sum[c] = sum[c] * factor + offset;
        }
        done += 2.0 * chains * lanes<float> * rounds;
        elapsed = now() - start;
    }
    Vec<float> total{};
    for (int c = 0; c < chains; ++c) total += sum[c];
    volatile float sink = MVENET_ISA::sum<float>(total);
    (void)sink;
    return done / elapsed;
}

}  // namespace mvenet::MVENET_ISA
