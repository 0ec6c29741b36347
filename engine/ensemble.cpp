#include "ensemble.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "threads.hpp"

namespace mvenet {
namespace {

// Mean and variance of what the networks say of some rows, one network after the other (Welford's
// sums). In units of the largest scale and counted from the first
// network's mean, so that squares neither overflow nor vanish nor lose their digits.
class Mixture {
public:
    Mixture(const Scaling* scalings, std::int64_t networks, const Answer& answer)
        : scalings_(scalings), answer_(answer), origin_(*scalings[0].y_mean),
          weight_(1.0 / double(networks)) {
        for (std::int64_t k = 0; k < networks; ++k) {
            unit_ = std::max(unit_, *scalings[k].y_scale);
            total_ += weight_;
            share_.push_back(weight_ / total_);
        }
    }

    void start(std::int64_t row, std::int64_t rows) {
        start_ = row;
        mean_.assign(std::size_t(rows), 0.0);
        squares_.assign(std::size_t(rows), 0.0);
    }
    void add(std::int64_t network, std::int64_t row, int n, const double* mean,
             const double* deviation) {
        const Scaling& scaling = scalings_[network];
        const double share = share_[std::size_t(network)];
        const double shift = (*scaling.y_mean - origin_) / unit_;
        const double stretch = *scaling.y_scale / unit_;
        double* const centre = mean_.data() + (row - start_);
        double* const squares = squares_.data() + (row - start_);
        for (int i = 0; i < n; ++i) {
            const double value = shift + stretch * mean[i];
            const double distance = value - centre[i];
            centre[i] += share * distance;
            squares[i] += weight_ * distance * (value - centre[i]);
            if (!deviation) continue;
            const double noise = answer_.factor * stretch * deviation[i];
            squares[i] += weight_ * noise * noise;
        }
    }
    void finish() const {
        for (std::size_t i = 0; i < mean_.size(); ++i) {
            answer_.mean[start_ + std::int64_t(i)] = origin_ + unit_ * mean_[i];
            if (!answer_.deviation) continue;
            const double deviation = unit_ * std::sqrt(squares_[i] / total_);
            answer_.deviation[start_ + std::int64_t(i)] =
                std::max(deviation, std::numeric_limits<double>::min());
        }
    }

private:
    const Scaling* scalings_;
    const Answer& answer_;
    double origin_, unit_ = 0, weight_, total_ = 0;
    std::vector<double> share_;  // of a network among those up to it
    std::int64_t start_ = 0;
    std::vector<double> mean_, squares_;
};

// Rows that are predicted at a time: so many that weights are read seldom, so few that the rows
// stay in the cache and there is a piece for every thread.
std::int64_t piece_of(const Table& table, int threads) {
    const std::int64_t most =
        std::clamp<std::int64_t>(65536 / std::max(table.columns, 1), 64, 1024);
    const std::int64_t share = (table.rows / (4 * threads) + 31) / 32 * 32;
    return std::clamp<std::int64_t>(share, 128, std::max<std::int64_t>(most, 128));
}

}  // namespace

template <class T>
void predict_ensemble(const KernelsFor<T>& kernels, const Plan& plan, const Table& table,
                      const Ensemble<T>& networks, int threads, const Answer& answer) {
    const std::int64_t piece = piece_of(table, threads);
    const std::int64_t pieces = (table.rows + piece - 1) / piece;
    std::atomic<std::int64_t> next{0};
    const auto work = [&](int) {
        Mixture mixture(networks.scalings, networks.size, answer);
        auto tell = [&](std::int64_t k, std::int64_t row, int n, const double* mean,
                        const double* deviation) {
            if (answer.mixture) return mixture.add(k, row, n, mean, deviation);
            const Scaling& scaling = networks.scalings[k];
            const std::int64_t at = k * table.rows + row;
            for (int i = 0; i < n; ++i) {
                answer.mean[at + i] = *scaling.y_mean + *scaling.y_scale * mean[i];
                if (deviation) answer.deviation[at + i] = *scaling.y_scale * deviation[i];
            }
        };
        using Tell = decltype(tell);
        const Listener listener{[](void* context, std::int64_t k, std::int64_t row, int n,
                                   const double* mean, const double* deviation) {
                                    (*static_cast<Tell*>(context))(k, row, n, mean, deviation);
                                },
                                &tell, answer.deviation != nullptr};
        for (std::int64_t i; (i = next.fetch_add(1)) < pieces;) {
            const std::int64_t start = i * piece, rows = std::min(piece, table.rows - start);
            if (answer.mixture) mixture.start(start, rows);
            kernels.predict(plan, networks, table, start, rows, listener);
            if (answer.mixture) mixture.finish();
        }
    };
    on_threads(int(std::min<std::int64_t>(threads, pieces)) - 1, work, work);
}

template void predict_ensemble<float>(const KernelsFor<float>&, const Plan&, const Table&,
                                      const Ensemble<float>&, int, const Answer&);
template void predict_ensemble<double>(const KernelsFor<double>&, const Plan&, const Table&,
                                       const Ensemble<double>&, int, const Answer&);

}  // namespace mvenet
