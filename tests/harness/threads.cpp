// What threads throw reaches the caller, and all that they were given is done.
#include "threads.hpp"

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

template <class Run> std::string told(const Run& run) {
    try {
        run();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "nothing";
}

int failures = 0;
void expect(bool right, const char* what) {
    if (right) return;
    std::printf("%s\n", what);
    ++failures;
}

}  // namespace

int main() {
    using namespace mvenet;
    const std::int64_t n = 1000;
    for (const int threads : {1, 2, 7, 5000}) {
        std::vector<int> seen(n);
        const auto run = [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) ++seen[std::size_t(i)];
        };
        in_parts(n, 10, threads, run);
        expect(seen == std::vector<int>(n, 1), "every row once");
        for (const std::int64_t bad : {std::int64_t(0), n / 2, n - 1}) {
            const auto fail = [&](std::int64_t begin, std::int64_t end) {
                if (begin <= bad && bad < end) throw std::runtime_error("a bad row");
            };
            expect(told([&] { in_parts(n, 10, threads, fail); }) == "a bad row", "a part throws");
        }
    }
    in_parts(0, 10, 4, [](std::int64_t begin, std::int64_t end) {
        expect(begin == 0 && end == 0, "no rows");
    });
    std::atomic<int> ended{0};
    const auto work = [&](int) { ++ended; };
    const auto here = [](int) { throw std::runtime_error("here"); };
    expect(told([&] { on_threads(3, work, here); }) == "here" && ended == 3, "the caller throws");
    return failures;
}
