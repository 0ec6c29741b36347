// Counts the parameters of the widest layers that are allowed, without making them: 65,536 times
// 65,536 weights are more than an int can number. Compiled with UndefinedBehaviorSanitizer.
#define MVENET_ISA baseline
#define MVENET_VECTOR_BYTES 16
#define MVENET_REGISTERS 16
#include <cstdio>

#include "kernels.inc.hpp"

int main() {
    using namespace mvenet;
    const int sizes[] = {65536, 65536, 65536, 1};
    baseline::Arena arena;
    baseline::Perceptron<float> net({sizes, 3}, Activation::elu, false, arena);
    std::ptrdiff_t least = 0, last = 0;  // with no room between rows
    for (int l = 0; l < 3; ++l) {
        last = std::ptrdiff_t(sizes[l] + 1) * sizes[l + 1];
        least += last;
    }
    // Addresses only: nothing is there.
    const auto* const start = reinterpret_cast<const float*>(std::uintptr_t(1) << 40);
    const float* const end = net.borrow(start);
    const auto& layer = net.layer(2);
    const bool counted = net.parameters() >= least && net.parameters() < least + least / 100;
    const bool placed = end - start == least && end - layer.weight == last;
    if (!counted || !placed) std::printf("%td of %td parameters\n", net.parameters(), least);
    return counted && placed ? 0 : 1;
}
