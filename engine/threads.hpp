// Work shared out among threads; whatever one of them throws reaches the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace mvenet {

// Run work(i) on n further threads and, meanwhile, here(started) on this one, which is told how
// many there are: a system that is short of threads may give fewer. The first exception is thrown
// again after all have ended, because what they work on is the caller's.
template <class Work, class Here> void on_threads(int n, const Work& work, const Here& here) {
    std::exception_ptr failure;
    std::mutex mutex;
    const auto guarded = [&](const auto& run) {
        try {
            run();
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    try {
        for (int i = 0; i < n; ++i) threads.emplace_back([&, i] { guarded([&] { work(i); }); });
    } catch (...) {  // those that there are do it all
    }
    guarded([&] { here(int(threads.size())); });
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// run(begin, end) for all of n rows, in as many parts as there are threads; fewer than `few` are
// not worth one.
template <class Run> void in_parts(std::int64_t n, std::int64_t few, int threads, const Run& run) {
    const std::int64_t parts = std::clamp<std::int64_t>(n / few, 1, threads);
    std::atomic<std::int64_t> next{0};
    const auto work = [&](int) {
        for (std::int64_t p; (p = next.fetch_add(1)) < parts;)
            run(n * p / parts, n * (p + 1) / parts);
    };
    on_threads(int(parts) - 1, work, work);
}

}  // namespace mvenet
