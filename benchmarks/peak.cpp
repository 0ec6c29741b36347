// Fused multiply-adds of one core, in FLOP/s of float32, with the vectors that the engine uses. In
// as many independent chains as a tile of its products has sums, and of the time that this thread
// had a core, so that a busy neighbour does not count. Compiled by peak.py, once for each
// instruction set.
#include <time.h>

#include "simd.hpp"

extern "C" double peak(double seconds) {
    using namespace mvenet::MVENET_ISA;
    constexpr int chains = MVENET_REGISTERS == 32 ? 24 : 12;
    const auto now = [] {
        timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
    };
    Vec<float> sums[chains];
    for (int c = 0; c < chains; ++c) sums[c] = splat<float>(float(c) * 1e-3f);
    const Vec<float> factor = splat<float>(0.999f), offset = splat<float>(1e-3f);
    const double start = now();
    double elapsed = 0, done = 0;
    while (elapsed < seconds) {
        constexpr int rounds = 20000;
        for (int i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
            for (int c = 0; c < chains; ++c) sums[c] = sums[c] * factor + offset;
        }
        done += 2.0 * chains * lanes<float> * rounds;
        elapsed = now() - start;
    }
    Vec<float> total{};
    for (int c = 0; c < chains; ++c) total += sums[c];
    volatile float sink = sum<float>(total);
    (void)sink;
    return done / elapsed;
}
