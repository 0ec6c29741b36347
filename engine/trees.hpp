// A forest of regression trees: what its trees say of a row, each or on average.
//
// Trees lie one after the other, each depth first: the left child of a node is the next node, the
// right one is named. A row goes left if its value, as float32, is at most the threshold. A leaf
// has no feature, and its value stands in the threshold's place.
//
// A forest may come from a file of unknown origin. Every node is checked where it is read: to look
// through all of them first would take longer than to predict a row.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernel.hpp"
#include "threads.hpp"

namespace mvenet {

// Two bytes are enough for the columns of most tables.
template <class Feature> struct Forest {
    const Feature* feature;  // -1: a leaf
    const float* threshold;
    const std::int32_t* right;   // counted from the tree's root
    const std::int64_t* starts;  // of each tree, and the end of the last
    std::int64_t trees;
    std::int32_t columns;  // that there are
};

// Whether an inner node asks for a column that there is and leads on within its tree of `size`
// nodes, so that no row ever comes back to it. Without branches, as it is asked of every node.
template <class Feature>
bool leads_on(const Forest<Feature>& forest, std::int64_t root, std::int64_t node,
              std::int64_t size) {
    const std::int64_t right = forest.right[root + node];
    return bool(int(forest.feature[root + node] < forest.columns) & int(right > node + 1) &
                int(right < size));
}

[[noreturn]] inline void refuse() {
    throw std::invalid_argument("a tree asks for a column that is not there or leads nowhere");
}

constexpr int together = 16;  // rows that descend a tree side by side

// A node as rows pass it: all that they ask for lies side by side. A row goes one node on and, if
// its value is above the threshold, `skip` bytes more. A leaf has a threshold that nothing is
// below, and skips back to itself.
struct Node {
    float threshold;
    std::uint32_t value;  // where that of the first row is
    std::int64_t skip;
};

// Without branches: whether a node is a leaf is as good as random.
template <class Feature>
void unfold(const Forest<Feature>& forest, std::int64_t tree, std::vector<Node>& nodes) {
    const std::int64_t root = forest.starts[tree], size = forest.starts[tree + 1] - root;
    nodes.resize(std::size_t(size));
    std::int32_t wrong = 0;
    for (std::int64_t i = 0; i < size; ++i) {
        const std::int32_t f = forest.feature[root + i], leaf = f >> 31;  // all bits, or none
        const auto threshold = std::bit_cast<std::int32_t>(forest.threshold[root + i]);
        const std::int64_t skip = ((forest.right[root + i] - i) & ~std::int64_t(leaf)) - 1;
        nodes[std::size_t(i)] = {std::bit_cast<float>(threshold | leaf),  // all bits: not a number
                                 std::uint32_t(f & ~leaf) * unsigned(together),
                                 skip * std::int64_t(sizeof(Node))};
        wrong |= ~leaf & -std::int32_t(!leads_on(forest, root, i, size));
    }
    if (wrong) refuse();
}

// Where in a tree rows end, side by side: each waits for memory at every node, and the others do
// not wait for it. No branch depends on a row, because nobody could foretell it; a row in a leaf
// stays there until all are in one. The values of a column lie side by side, too.
inline void descend(const Node* nodes, const float* x, std::int64_t* leaves) {
    const char* const root = reinterpret_cast<const char*>(nodes);
    const char* at[together];
    std::fill_n(at, together, root);
    for (std::int64_t moved = 1; moved != 0;) {
        moved = 0;
#pragma GCC unroll 16
        for (int r = 0; r < together; ++r) {
            const Node& here = *reinterpret_cast<const Node*>(at[r]);
            const std::int64_t right = -std::int64_t(!(x[here.value + r] <= here.threshold));
            const std::int64_t step = std::int64_t(sizeof(Node)) + (right & here.skip);
            at[r] += step;
            moved |= step;
        }
    }
    for (int r = 0; r < together; ++r) leaves[r] = (at[r] - root) / std::int64_t(sizeof(Node));
}

// The same for one row, of a tree that is not worth unfolding for it.
template <class Feature>
std::int64_t follow(const Forest<Feature>& forest, std::int64_t root, std::int64_t size,
                    const float* x) {
    std::int64_t node = 0;
    for (int f; (f = forest.feature[root + node]) >= 0;) {
        if (!leads_on(forest, root, node, size)) refuse();
        node =
            x[f * together] <= forest.threshold[root + node] ? node + 1 : forest.right[root + node];
    }
    return node;
}

// Rows from `begin` to `end`: tree by tree over some rows, so that a tree stays in the cache.
// `each`: the values of all trees, [tree][row]; otherwise their average.
template <class Feature>
void predict_rows(const Forest<Feature>& forest, const Table& table, std::int64_t begin,
                  std::int64_t end, bool each, double* out) {
    constexpr std::int64_t few = 16, most_numbers = 1 << 22;
    const std::int64_t d = table.columns, width = std::max<std::int64_t>(d, 1);  // a leaf reads one
    const std::int64_t group = width * together;
    const std::int64_t block = std::clamp<std::int64_t>(most_numbers / width, together, 8192);
    const std::int64_t most = std::min(block, end - begin);
    std::vector<float> rows(std::size_t((most + together - 1) / together * group));
    std::vector<Node> nodes;
    for (std::int64_t from = begin; from < end; from += block) {
        const std::int64_t count = std::min(block, end - from);
        for (std::int64_t r = 0; r < count; ++r) {
            float* const x = rows.data() + r / together * group + r % together;
            for (int c = 0; c < d; ++c) x[c * together] = float(table.at(from + r, c));
            if (!each) out[from + r] = 0;
        }
        for (std::int64_t t = 0; t < forest.trees; ++t) {
            const std::int64_t root = forest.starts[t], size = forest.starts[t + 1] - root;
            const bool many = size <= few * count;
            if (many) unfold(forest, t, nodes);
            for (std::int64_t r = 0; r < count; r += together) {
                const float* const x = rows.data() + r / together * group;
                const std::int64_t here = std::min<std::int64_t>(together, count - r);
                std::int64_t leaves[together];
                if (many) descend(nodes.data(), x, leaves);
                for (std::int64_t i = 0; i < here; ++i) {
                    const std::int64_t leaf = many ? leaves[i] : follow(forest, root, size, x + i);
                    const double value = double(forest.threshold[root + leaf]);
                    if (each)
                        out[t * table.rows + from + r + i] = value;
                    else
                        out[from + r + i] += value;
                }
            }
        }
        for (std::int64_t r = 0; r < count && !each; ++r) out[from + r] /= double(forest.trees);
    }
}

template <class Feature>
void predict_forest(const Forest<Feature>& forest, const Table& table, int threads, bool each,
                    double* out) {
    in_parts(table.rows, 2048, threads, [&](std::int64_t begin, std::int64_t end) {
        predict_rows(forest, table, begin, end, each, out);
    });
}

}  // namespace mvenet
