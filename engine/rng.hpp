// Random numbers: xoshiro256++ (Blackman and Vigna), seeded through splitmix64.
//
// A network has one seed and a stream for each purpose, so that the order of its batches does not
// depend on how many weights were drawn before.
#pragma once

#include <cstdint>

namespace mvenet::MVENET_ISA {

enum class Stream : std::uint64_t {
    mean_weights,
    variance_weights,
    warmup_batches,
    batches,
    trees
};

class Random {
public:
    Random(std::uint64_t seed, Stream stream) {
        std::uint64_t state = seed ^ (static_cast<std::uint64_t>(stream) * 0xD1342543DE82EF95u);
        for (std::uint64_t& word : state_) {
            state += 0x9E3779B97F4A7C15u;
            std::uint64_t z = state;
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
            word = z ^ (z >> 31);
        }
    }

    std::uint64_t next() {
        const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotate(state_[3], 45);
        return result;
    }

    double uniform() { return double(next() >> 11) * 0x1p-53; }

    // below n; the bias of at most n / 2^64 is far under what any test could see
    std::uint64_t below(std::uint64_t n) {
        __extension__ typedef unsigned __int128 Wide;
        return std::uint64_t((Wide(next()) * n) >> 64);
    }

private:
    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    std::uint64_t state_[4];
};

}  // namespace mvenet::MVENET_ISA
