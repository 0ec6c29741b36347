// A forest of regression trees: the average of what its trees say of a row.
//
// Trees lie one after the other, each depth first: the left child of a node is the next node, the
// right one is named. A row goes left if its value, as float32, is at most the threshold. A leaf
// has no feature, and its value stands in the threshold's place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "fleet.hpp"

namespace mvenet {

struct Forest {
    const std::int16_t* feature;  // -1: a leaf
    const float* threshold;
    const std::int32_t* right;   // counted from the tree's root
    const std::int64_t* starts;  // of each tree, and the end of the last
    std::int64_t trees;
};

// Rows from `begin` to `end`: tree by tree over a few rows, so that a tree stays in the cache.
inline void predict_rows(const Forest& forest, const Table& table, std::int64_t begin,
                         std::int64_t end, double* out) {
    constexpr std::int64_t block = 512;
    std::vector<float> row(std::size_t(block) * std::size_t(table.columns));
    for (std::int64_t from = begin; from < end; from += block) {
        const std::int64_t count = std::min(block, end - from);
        for (std::int64_t r = 0; r < count; ++r) {
            for (int c = 0; c < table.columns; ++c)
                row[std::size_t(r * table.columns + c)] = float(table.at(from + r, c));
            out[from + r] = 0;
        }
        for (std::int64_t t = 0; t < forest.trees; ++t) {
            const std::int64_t root = forest.starts[t];
            for (std::int64_t r = 0; r < count; ++r) {
                const float* x = row.data() + r * table.columns;
                std::int64_t node = 0;
                for (std::int16_t f; (f = forest.feature[root + node]) >= 0;)
                    node = x[f] <= forest.threshold[root + node] ? node + 1
                                                                 : forest.right[root + node];
                out[from + r] += double(forest.threshold[root + node]);
            }
        }
        for (std::int64_t r = 0; r < count; ++r) out[from + r] /= double(forest.trees);
    }
}

inline void predict_forest(const Forest& forest, const Table& table, int threads, double* out) {
    const std::int64_t few = 2048;  // rows that are not worth a thread
    const std::int64_t n = table.rows;
    const std::int64_t parts = std::clamp<std::int64_t>(n / few, 1, threads);
    std::vector<std::thread> helpers;
    for (std::int64_t p = 1; p < parts; ++p)
        helpers.emplace_back(
            [&, p] { predict_rows(forest, table, n * p / parts, n * (p + 1) / parts, out); });
    predict_rows(forest, table, 0, n / parts, out);
    for (std::thread& helper : helpers) helper.join();
}

}  // namespace mvenet
