// Rows shared out among threads, each a stretch of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace mvenet {

// run(begin, end) for all of n rows; fewer than `few` are not worth a thread.
template <class Run> void in_parts(std::int64_t n, std::int64_t few, int threads, const Run& run) {
    const std::int64_t parts = std::clamp<std::int64_t>(n / few, 1, threads);
    std::vector<std::thread> helpers;
    for (std::int64_t p = 1; p < parts; ++p)
        helpers.emplace_back([&, p] { run(n * p / parts, n * (p + 1) / parts); });
    run(0, n / parts);
    for (std::thread& helper : helpers) helper.join();
}

}  // namespace mvenet
