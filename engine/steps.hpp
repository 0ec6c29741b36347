// Networks that read columns cut into steps.
//
// Of a column's steps those below a row's value are 1, those above are 0, and only the one that the
// value is in lies between. So the first layer needs no product over all of them: the weights of a
// column's steps, added up from the first one on, are a table for all rows of a network, and a row
// takes one line of it and a part of the next step's weights. To make the table costs as much as
// tens of rows do: where rows come one by one it is kept.
#pragma once

#include "arena.hpp"
#include "kernel.hpp"
#include "mlp.hpp"
#include "standardise.hpp"

namespace mvenet::MVENET_ISA {

// Rows as their plain inputs and, of each column with steps, the step and the part of it.
template <class T> class SteppedRows {
public:
    SteppedRows(const Table& table, const Scaling& first, std::int64_t start, std::int64_t n,
                Arena& arena)
        : encoding_(*table.encoding), columns_(table.columns),
          group_(arena.array<Group>(table.columns)) {
        for (int s = 0; s < encoding_.steps; ++s) {
            if (starts_column(s)) group_[groups_++] = {int(encoding_.column[s]), s, 0};
            ++group_[groups_ - 1].steps;
        }
        value_ = arena.array<T>(n * (plain() + groups_));
        step_ = arena.array<int>(n * groups_);
        const int last = columns_ + encoding_.steps;
        if (encoding_.last) last_mean_ = first.x_mean[last], last_scale_ = first.x_scale[last];
        for (std::int64_t r = 0; r < n; ++r)
            read(table, start + r, value_ + r * (plain() + groups_), step_ + r * groups_);
    }

    int plain() const { return columns_ + (encoding_.last ? 1 : 0); }
    int columns() const { return columns_; }
    int groups() const { return groups_; }
    int steps() const { return encoding_.steps; }
    bool starts_column(int s) const {
        return s == 0 || encoding_.column[s] != encoding_.column[s - 1];
    }
    // Plain inputs, then the parts; and the steps.
    const T* values(std::int64_t r) const { return value_ + r * (plain() + groups_); }
    const int* at(std::int64_t r) const { return step_ + r * groups_; }

    // A network's standardised input i, where the input itself is `value`: 0 or 1. The further
    // number is counted in the first network's standard deviations from its mean.
    double standardised_input(const Scaling& scaling, int i, double value) const {
        if (i == columns_ + encoding_.steps) value = last_mean_ + last_scale_ * value;
        return standardised(value, scaling.x_mean[i], scaling.x_scale[i]);
    }

private:
    struct Group {
        int column, first, steps;
    };

    void read(const Table& table, std::int64_t row, T* value, int* step) const {
        for (int c = 0; c < columns_; ++c)
            *value++ = T(bounded_input(table.at(row, c), encoding_.center[c], encoding_.scale[c],
                                       encoding_.bound));
        if (encoding_.last)
            *value++ = T(standardised(encoding_.last[row], last_mean_, last_scale_));
        for (int g = 0; g < groups_; ++g) {
            const Group& group = group_[g];
            const double x = table.at(row, group.column);
            const double* const low = encoding_.low + group.first;
            int s = 0;
            for (int i = 1; i < group.steps; ++i) s += x >= low[i];
            const double part = (x - low[s]) / encoding_.width[group.first + s];
            *value++ = T(part > 1 ? 1 : part > 0 ? part : 0);
            *step++ = group.first + s;
        }
    }

    const Encoding& encoding_;
    int columns_, groups_ = 0;
    Group* group_;
    double last_mean_ = 0, last_scale_ = 1;
    T* value_;
    int* step_;
};

// The first layer of one network, as lines of a number for each unit.
template <class T> class SteppedLayer {
public:
    SteppedLayer(const SteppedRows<T>& rows, const Shape& shape, Arena& arena)
        : rows_(rows), constant_(shape.sizes[0] == 0), width_(padded<T>(shape.sizes[1])) {
        if (constant_) return;
        scratch_ = arena.array<T>(std::ptrdiff_t(block_rows) * width_);
        ends_ = arena.array<T>(2 * std::ptrdiff_t(shape.sizes[0]));
    }

    bool constant() const { return constant_; }  // a network that reads nothing
    std::ptrdiff_t size() const {                // numbers of all lines
        return constant_ ? 0 : (1 + rows_.plain() + 2 * std::ptrdiff_t(rows_.steps())) * width_;
    }

    // Where the lines are, or where they will be.
    void place(T* lines) {
        bias_ = lines;
        plain_ = bias_ + width_;
        step_ = plain_ + std::ptrdiff_t(rows_.plain()) * width_;
    }

    // The lines of a network's weights. Adding a column's steps up assumes that standardised they
    // stay within `farthest`.
    void prepare(const Layer<T>& layer, const Scaling& scaling) {
        constexpr int w = lanes<T>;
        if (constant_) return;
        for (int i = 0; i < layer.in; ++i) {
            const double zero = rows_.standardised_input(scaling, i, 0);
            ends_[2 * i] = T(zero);
            ends_[2 * i + 1] = T(rows_.standardised_input(scaling, i, 1) - zero);
        }
        for (int u = 0; u < layer.out; u += w) {
            Vec<T> bias = some(layer.bias + u, layer.out - u), below{};
            for (int i = 0; i < layer.in; i += w) {
                Vec<T> square[w];
                for (int j = 0; j < w; ++j)
                    square[j] = u + j < layer.out
                                    ? some(layer.weight + (u + j) * layer.stride + i, layer.in - i)
                                    : Vec<T>{};
                transpose<T>(square);
                for (int j = 0; j < w && i + j < layer.in; ++j)
                    add(i + j, square[j], u, bias, below);
            }
            store<T>(bias_ + u, bias);
        }
    }

    // What enters the activations of a row. Each sum is a chain: many at once, so that they need
    // not wait for each other.
    void one(T* to, std::int64_t row = 0) const {
        constexpr int w = lanes<T>;
        for (int u = 0; u < width_; u += 8 * w) switch ((width_ - u) / w) {
                case 1: sum<1>(row, u, to); break;
                case 2: sum<2>(row, u, to); break;
                case 3: sum<3>(row, u, to); break;
                case 4: sum<4>(row, u, to); break;
                case 5: sum<5>(row, u, to); break;
                case 6: sum<6>(row, u, to); break;
                case 7: sum<7>(row, u, to); break;
                default: sum<8>(row, u, to);
            }
    }
    // Of `count` rows from `start` on, into the tape as [unit][row].
    void operator()(std::int64_t start, int count, T* tape) const {
        constexpr int w = lanes<T>;
        for (int r = 0; r < count; ++r) one(scratch_ + r * width_, start + r);
        for (int r = 0; r < count; r += w)
            for (int u = 0; u < width_; u += w) {
                Vec<T> square[w];
                for (int j = 0; j < w; ++j) square[j] = load<T>(scratch_ + (r + j) * width_ + u);
                transpose<T>(square);
                for (int j = 0; j < w; ++j) store<T>(tape + (u + j) * block_rows + r, square[j]);
            }
    }

private:
    // The weights of input i to the units from u on.
    MVENET_INLINE void add(int i, Vec<T> weights, int u, Vec<T>& bias, Vec<T>& below) {
        const Vec<T> gain = weights * ends_[2 * i + 1];
        bias += weights * ends_[2 * i];
        const int columns = rows_.columns(), step = i - columns;
        if (step < 0 || step == rows_.steps()) {
            store<T>(plain_ + (step < 0 ? i : columns) * width_ + u, gain);
            return;
        }
        if (rows_.starts_column(step)) below = Vec<T>{};
        store<T>(step_ + 2 * step * width_ + u, below);
        store<T>(step_ + (2 * step + 1) * width_ + u, gain);
        below += gain;
    }

    // One row's sums for N vectors of units.
    template <int N> MVENET_INLINE void sum(std::int64_t row, int u, T* to) const {
        constexpr int w = lanes<T>;
        Vec<T> sums[N];
        for (int n = 0; n < N; ++n) sums[n] = load<T>(bias_ + u + n * w);
        const T* value = rows_.values(row);
        const T* line = plain_ + u;
        for (int i = rows_.plain(); i > 0; --i, ++value, line += width_)
            for (int n = 0; n < N; ++n) sums[n] += splat<T>(*value) * load<T>(line + n * w);
        const int* step = rows_.at(row);
        for (int g = rows_.groups(); g > 0; --g, ++value, ++step) {
            line = step_ + std::ptrdiff_t(*step) * 2 * width_ + u;
            for (int n = 0; n < N; ++n) {
                sums[n] += load<T>(line + n * w);
                sums[n] += splat<T>(*value) * load<T>(line + width_ + n * w);
            }
        }
        for (int n = 0; n < N; ++n) store<T>(to + u + n * w, sums[n]);
    }

    // A vector of which only the first `n` numbers may be read; the others are zero.
    static Vec<T> some(const T* from, int n) {
        if (n >= lanes<T>) return load<T>(from);
        Vec<T> v{};
        for (int i = 0; i < n; ++i) v[i] = from[i];
        return v;
    }

    const SteppedRows<T>& rows_;
    bool constant_;
    std::ptrdiff_t width_;
    T* bias_ = nullptr;     // [width]
    T* plain_ = nullptr;    // weights [plain][width]
    T* step_ = nullptr;     // [steps][2][width]: of the column's steps before it; its own
    T* scratch_ = nullptr;  // [block_rows][width]
    T* ends_ = nullptr;     // of each input, standardised: 0, and how far 1 is from it
};

// What the predictor asks: rows of a table as a network reads them.
template <class T> class StepReader {
public:
    StepReader(const Plan& plan, const Ensemble<T>& networks, const Table& table,
               std::int64_t start, std::int64_t n)
        : networks_(networks), rows_(table, networks.scalings[0], start, n, arena_),
          mean_(rows_, plan.mean, arena_), variance_(rows_, plan.variance, arena_) {
        if (!networks.kept) place(arena_.array<T>(size()));
    }

    static constexpr bool begins = true;                                     // with the first layer
    std::ptrdiff_t size() const { return mean_.size() + variance_.size(); }  // of a network's lines
    void place(T* lines) {
        mean_.place(lines);
        variance_.place(lines + mean_.size());
    }
    void prepare(std::int64_t k, const Perceptron<T>& mean, const Perceptron<T>& variance) {
        if (networks_.kept) return place(const_cast<T*>(networks_.kept) + k * networks_.kept_size);
        mean_.prepare(mean.layer(0), networks_.scalings[k]);
        variance_.prepare(variance.layer(0), networks_.scalings[k]);
    }
    void forward(bool variance, const Perceptron<T>& net, int b, int count, T* tape) const {
        const SteppedLayer<T>& first = variance ? variance_ : mean_;
        const Block<T> block{nullptr, nullptr, count, (count + lanes<T> - 1) / lanes<T>};
        if (!first.constant())
            first(std::int64_t(b) * block_rows, count, tape + net.layer(0).value);
        net.template forward<false>(block, tape, !first.constant());
    }
    // What a network reads that gets one row at a time: here, what enters its first activations.
    void first(bool variance, T* to) const {
        const SteppedLayer<T>& first = variance ? variance_ : mean_;
        if (!first.constant()) first.one(to);
    }

private:
    Arena arena_;
    const Ensemble<T>& networks_;
    SteppedRows<T> rows_;
    SteppedLayer<T> mean_, variance_;
};

}  // namespace mvenet::MVENET_ISA
