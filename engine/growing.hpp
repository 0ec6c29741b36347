// Extremely randomised trees (Geurts, Ernst and Wehenkel, 2006), grown until a node's rows agree.
//
// A node draws one threshold for each column, evenly between the smallest and the largest value of
// its rows, and takes the column whose threshold leaves the smallest squares. Columns are lanes: a
// row is a few vectors, and all columns are compared in one pass over the rows of a node.
#pragma once

#include <algorithm>
#include <vector>

#include "arena.hpp"
#include "kernel.hpp"
#include "rng.hpp"
#include "simd.hpp"

namespace mvenet::MVENET_ISA {

class Grower {
public:
    Grower(const Sample& sample, std::uint64_t seed, Tree& tree)
        : sample_(sample), random_(seed, Stream::trees), tree_(tree),
          low_(arena_.array<float>(sample.stride)), high_(arena_.array<float>(sample.stride)),
          threshold_(arena_.array<float>(sample.stride)),
          score_(arena_.array<float>(sample.stride)) {
        draw();
        aside_.resize(rows_.size());
        counted_.resize(rows_.size());
        residual_.resize(rows_.size());
    }

    void grow() {
        // A left child is the next node, so that right ones wait.
        struct Waiting {
            std::int64_t begin, end, parent;  // parent: whose right child it is, or -1
        };
        std::vector<Waiting> waiting{{0, std::int64_t(rows_.size()), -1}};
        while (!waiting.empty()) {
            const auto [begin, end, parent] = waiting.back();
            waiting.pop_back();
            const std::int64_t node = std::int64_t(tree_.feature.size());
            if (parent >= 0) tree_.right[std::size_t(parent)] = std::int32_t(node);
            tree_.right.push_back(0);
            const float mean = measure(begin, end);
            const int column = same_ ? -1 : best(begin, end);
            tree_.feature.push_back(column);
            tree_.threshold.push_back(column < 0 ? mean : threshold_[column]);
            if (column < 0) continue;
            const std::int64_t middle = part(begin, end, column);
            waiting.push_back({middle, end, node});
            waiting.push_back({begin, middle, -1});
        }
    }

private:
    using V = Vec<float>;

    // The rows of the tree: all, or so many drawn with replacement, each weighed by how often.
    void draw() {
        const std::int64_t n = sample_.rows;
        weight_.assign(std::size_t(n), sample_.drawn ? 0.0f : 1.0f);
        for (std::int64_t i = 0; i < sample_.drawn; ++i)
            weight_[random_.below(std::uint64_t(n))] += 1.0f;
        for (std::int64_t r = 0; r < n; ++r) {
            if (sample_.weight) weight_[std::size_t(r)] *= float(sample_.weight[r]);
            if (weight_[std::size_t(r)] > 0) rows_.push_back(std::int32_t(r));
        }
        if (rows_.empty()) {  // weights too small for a float
            weight_[0] = 1.0f;
            rows_.push_back(0);
        }
    }

    const float* row(std::int64_t i) const {
        return sample_.x + rows_[std::size_t(i)] * sample_.stride;
    }

    // Mean of the rows' outcomes, and how far each is from it, times its weight.
    float measure(std::int64_t begin, std::int64_t end) {
        const double first = sample_.y[rows_[std::size_t(begin)]];
        double sum = 0, total = 0;
        same_ = true;
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int32_t r = rows_[std::size_t(i)];
            const double w = weight_[std::size_t(r)], apart = sample_.y[r] - first;
            same_ &= apart == 0;
            sum += w * apart;
            total += w;
        }
        const double mean = first + sum / total;
        total_ = float(total);
        if (!same_)
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int32_t r = rows_[std::size_t(i)];
                counted_[std::size_t(i)] = weight_[std::size_t(r)];
                residual_[std::size_t(i)] = float(weight_[std::size_t(r)] * (sample_.y[r] - mean));
            }
        return float(mean);
    }

    // The column to part the rows by, or -1 if all of them are constant.
    int best(std::int64_t begin, std::int64_t end) {
        for (std::ptrdiff_t c = 0; c < sample_.stride; c += lanes<float>) range(begin, end, c);
        for (int c = 0; c < sample_.columns; ++c) {
            const float low = low_[c], high = high_[c];
            const float at = low + float(random_.uniform()) * (high - low);
            threshold_[c] = at < high ? at : low;  // rounded up, it would part nothing
        }
        for (std::ptrdiff_t c = 0; c < sample_.stride; c += lanes<float>) compare(begin, end, c);
        // Of the best any one: of two rows, all columns tell one from the other equally well.
        float most = -1;
        std::uint64_t equal = 0;
        for (int c = 0; c < sample_.columns; ++c) {
            if (!(low_[c] < high_[c] && score_[c] >= most)) continue;
            equal = score_[c] > most ? 1 : equal + 1;
            most = score_[c];
        }
        std::uint64_t before = random_.below(std::max<std::uint64_t>(equal, 1));
        for (int c = 0; equal && c < sample_.columns; ++c)
            if (low_[c] < high_[c] && score_[c] == most && before-- == 0) return c;
        return -1;
    }

    void range(std::int64_t begin, std::int64_t end, std::ptrdiff_t c) {
        V low = load<float>(row(begin) + c), high = low;
        for (std::int64_t i = begin + 1; i < end; ++i) {
            const V x = load<float>(row(i) + c);
            low = smaller<float>(x, low);
            high = larger<float>(x, high);
        }
        store<float>(low_ + c, low);
        store<float>(high_ + c, high);
    }

    // By how much the squares fall if the rows are parted at the threshold of a column.
    void compare(std::int64_t begin, std::int64_t end, std::ptrdiff_t c) {
        const V threshold = load<float>(threshold_ + c), none{};
        V weight{}, sum{};
        for (std::int64_t i = begin; i < end; ++i) {
            const auto left = load<float>(row(i) + c) <= threshold;
            weight += left ? splat<float>(counted_[std::size_t(i)]) : none;
            sum += left ? splat<float>(residual_[std::size_t(i)]) : none;
        }
        const V rest = total_ - weight;  // of rows that hardly weigh, an error of rounding
        const auto told = rest > total_ * 1e-6f;
        store<float>(score_ + c, told ? sum * sum / (weight * rest) : none);
    }

    // Those that go left first, in the order in which they were; where the others begin.
    std::int64_t part(std::int64_t begin, std::int64_t end, int column) {
        std::int64_t left = begin, right = 0;
        const float threshold = threshold_[column];
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int32_t r = rows_[std::size_t(i)];
            if (row(i)[column] <= threshold)
                rows_[std::size_t(left++)] = r;
            else
                aside_[std::size_t(right++)] = r;
        }
        std::copy_n(aside_.begin(), right, rows_.begin() + left);
        return left;
    }

    const Sample& sample_;
    Random random_;
    Tree& tree_;
    Arena arena_;
    float *low_, *high_, *threshold_, *score_;  // of each column, in the node at hand
    std::vector<std::int32_t> rows_, aside_;
    std::vector<float> weight_;              // of each row of the table
    std::vector<float> counted_, residual_;  // of each row of the node
    float total_ = 0;                        // weight of the node
    bool same_ = false;                      // whether its outcomes are
};

static void grow_tree(const Sample& sample, std::uint64_t seed, Tree& tree) {
    Grower(sample, seed, tree).grow();
}

}  // namespace mvenet::MVENET_ISA
