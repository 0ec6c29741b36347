// A forest of regression trees: the average of what its trees say of a row.
//
// Trees lie one after the other, each depth first: the left child of a node is the next node, the
// right one is named. A row goes left if its value, as float32, is at most the threshold. A leaf
// has no feature, and its value stands in the threshold's place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fleet.hpp"
#include "parts.hpp"

namespace mvenet {

struct Forest {
    const std::int16_t* feature;  // -1: a leaf
    const float* threshold;
    const std::int32_t* right;   // counted from the tree's root
    const std::int64_t* starts;  // of each tree, and the end of the last
    std::int64_t trees;
};

// What a tree says of some rows, side by side: each waits for memory at every node, and the others
// do not wait for it. No branch depends on a row, because nobody could foretell it; a row in a leaf
// stays there until all are in one.
template <int Rows>
inline void descend(const Forest& forest, std::int64_t root, const float* x, int columns,
                    float* out) {
    const std::int16_t* const feature = forest.feature + root;
    const float* const threshold = forest.threshold + root;
    const std::int32_t* const right = forest.right + root;
    std::int32_t node[Rows] = {};
    for (std::int32_t leaves = 0; leaves == 0;) {
        leaves = -1;  // all bits are set in a mask that is true
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
            const std::int32_t here = node[r], f = feature[here], leaf = f >> 31;
            const float value = x[r * columns + (f & ~leaf)];
            const std::int32_t goes_right = -std::int32_t(!(value <= threshold[here]));
            node[r] = here + ((1 + (goes_right & (right[here] - here - 1))) & ~leaf);
            leaves &= leaf;
        }
    }
    for (int r = 0; r < Rows; ++r) out[r] = threshold[node[r]];
}

// Rows from `begin` to `end`: tree by tree over some rows, so that a tree stays in the cache.
inline void predict_rows(const Forest& forest, const Table& table, std::int64_t begin,
                         std::int64_t end, double* out) {
    constexpr std::int64_t block = 4096;
    constexpr int together = 8;
    const int d = table.columns;
    std::vector<float> rows(std::size_t(std::min(block, end - begin) * d));
    for (std::int64_t from = begin; from < end; from += block) {
        const std::int64_t count = std::min(block, end - from);
        for (std::int64_t r = 0; r < count; ++r) {
            for (int c = 0; c < d; ++c) rows[std::size_t(r * d + c)] = float(table.at(from + r, c));
            out[from + r] = 0;
        }
        for (std::int64_t t = 0; t < forest.trees; ++t) {
            float said[together];
            std::int64_t r = 0;
            for (; r + together <= count; r += together) {
                descend<together>(forest, forest.starts[t], rows.data() + r * d, d, said);
                for (int i = 0; i < together; ++i) out[from + r + i] += double(said[i]);
            }
            for (; r < count; ++r) {
                descend<1>(forest, forest.starts[t], rows.data() + r * d, d, said);
                out[from + r] += double(said[0]);
            }
        }
        for (std::int64_t r = 0; r < count; ++r) out[from + r] /= double(forest.trees);
    }
}

inline void predict_forest(const Forest& forest, const Table& table, int threads, double* out) {
    in_parts(table.rows, 2048, threads, [&](std::int64_t begin, std::int64_t end) {
        predict_rows(forest, table, begin, end, out);
    });
}

}  // namespace mvenet
