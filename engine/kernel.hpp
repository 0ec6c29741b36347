// What the two halves of the engine say to each other.
//
// The arithmetic (simd, mlp, objective, adam, trainer) is compiled once per instruction set, each
// time in a namespace of its own; the rest (fleet, ensemble, bindings) is compiled once. This
// header is all that both sides see: plain structs of numbers and pointers, no code. Nothing here
// may pull in a standard container, because an inline function compiled for AVX-512 could then be
// linked into the baseline.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace mvenet {

// Each kind of choice is listed here once, with its name in Python; enums, bindings and the
// switches that must know all of them follow from the list.
#define MVENET_ACTIVATIONS(X) X(elu, "elu") X(relu, "relu") X(tanh, "tanh") X(silu, "silu")
#define MVENET_OBJECTIVES(X) \
    X(nll, "nll")            \
    X(beta_nll, "beta-nll")  \
    X(faithful, "faithful") X(crps, "crps") X(student_t, "student-t") X(natural, "natural")
// of the learning rate within a stage; both cosines fall to zero along half of one
#define MVENET_SCHEDULES(X) \
    X(constant, "constant") X(cosine, "cosine") X(ramp_cosine, "ramp-cosine")
// warmup: the mean alone, variance exactly e. joint: both. variance: the mean stays as it is.
#define MVENET_MODES(X) X(warmup, "warmup") X(joint, "joint") X(variance, "variance")

#define MVENET_FIRST(id, name) id,
enum class Activation { MVENET_ACTIVATIONS(MVENET_FIRST) };
enum class Objective { MVENET_OBJECTIVES(MVENET_FIRST) };
enum class Schedule { MVENET_SCHEDULES(MVENET_FIRST) };
enum class Mode { MVENET_MODES(MVENET_FIRST) };
#undef MVENET_FIRST

enum class Status : std::uint8_t { trained = 0, diverged = 1, interrupted = 2 };

// Sizes of one perceptron, inputs first, the output (1) last: `layers + 1` numbers.
// A constant is a single layer without inputs: {0, 1}.
struct Shape {
    const int* sizes;
    int layers;
};

// Inputs that are steps (mvenet._models.piecewise), in training: of a column's steps those below a
// row's value are 1, those above it 0, and only one lies between. All stand together.
struct Stairs {
    int first;         // inputs before them
    int columns;       // that have steps
    const int* begin;  // the number of each column's first step, and how many there are in all
};

// What all networks of a fleet have in common.
struct Plan {
    int inputs = 0;  // of a row: its columns, or what is made of them; a network may have none
    Shape mean;
    Shape variance;
    Activation activation = Activation::elu;
    Objective objective = Objective::nll;
    double beta = 0.5;     // of beta-nll
    double df = 5.0;       // of student-t
    bool natural = false;  // the first network's output is mean / variance
    std::int64_t batch_size = 32;
    double clip_value = 5.0;         // infinity: no clipping
    const Stairs* stairs = nullptr;  // in training, if some inputs are steps
};

// One stage of one network.
struct Stage {
    Mode mode = Mode::joint;
    bool fresh = true;           // start from random weights, else from the parameters given
    bool init_var_bias = false;  // first set the variance's output bias from the residuals
    Schedule schedule = Schedule::constant;
    std::uint64_t seed = 0;
    std::int64_t epochs = 1;
    std::int64_t patience = 0;  // epochs without improvement; 0: no early stopping
    std::int64_t window = 0;    // epochs by which convergence is judged; 0: it is not
    double learning_rate = 1e-3;
    double reg_mean = 0.0;
    double reg_var = 0.0;
};

// Inputs made of a table's columns (mvenet._models.piecewise): first each column, standardised and
// bent; then for each step, a stretch of one column, which part of it lies below the row's value;
// then perhaps one number more.
struct Encoding {
    const double *center, *scale;  // of the columns
    double bound;
    const std::int64_t* column;  // of each step, ascending
    const double *low, *width;   // a step begins where the one before it in its column ends
    int steps;
    const double* last;  // the further number of each row, or null
};

// The caller's table, in either memory order.
struct Table {
    const void* x;
    bool is_double;
    std::int64_t rows;
    int columns;
    std::ptrdiff_t row_stride, column_stride;  // in numbers
    const double* y;
    const double* weight;                // or null
    const Encoding* encoding = nullptr;  // in prediction: networks read what is made of the columns

    double at(std::int64_t row, int column) const {
        const std::ptrdiff_t i = row * row_stride + column * column_stride;
        return is_double ? static_cast<const double*>(x)[i]
                         : double(static_cast<const float*>(x)[i]);
    }
};

// Means and standard deviations of the rows that a network is trained on: `columns` numbers each,
// and one. Standardised inputs z are bent to z / sqrt(1 + (z / bound)^2), which stays within the
// bound; infinity leaves them alone.
struct Scaling {
    double *x_mean, *x_scale, *y_mean, *y_scale;
    double bound;
};

// Standardised inputs and predictions are kept within a million standard deviations, so that
// nothing overflows.
constexpr double farthest = 1e6;
constexpr int most_units = 65536;  // of a layer

// Standardised rows, `stride` numbers apart and readable for 64 bytes past the end. Or, if there is
// a table, rows of it that are standardised whenever they are needed, to the same numbers.
template <class T> struct Rows {
    const T* x = nullptr;
    const T* y = nullptr;       // of the first row; of the others likewise, `stride` apart
    const T* weight = nullptr;  // mean one, or null: all one
    std::ptrdiff_t stride = 0;
    std::int64_t n = 0;
    const Table* table = nullptr;
    const Scaling* scaling = nullptr;
    const std::int64_t* index = nullptr;  // which rows of the table; null: the first n
    double mean_weight = 1;               // of these rows
    // With stairs, x has the other inputs, then for each column how far a row is above a stair; the
    // stairs' numbers, `columns` for each row; and of each step, once it is standardised, what 0 is
    // and how far 1 is from it. There is no table then.
    const std::int32_t* stair = nullptr;
    const T* ends = nullptr;
};

// Other threads that may lend a hand: run() calls task(context, i) for every i < tasks, each once,
// in any order and on any of them, and returns when all are done.
struct Crew {
    void (*run)(Crew*, int tasks, void (*task)(void* context, int i), void* context);
    int threads;  // at most, the caller included
};

struct Control {
    const std::atomic<bool>* stop;
    std::atomic<std::int64_t>* steps;  // gradient steps done by the fleet so far
    Crew* crew;                        // or null
};

struct Outcome {
    Status status;
    std::int64_t epochs;
    std::int64_t steps;
};

// Trained networks of one plan.
template <class T> struct Ensemble {
    const T* const* parameters;
    const Scaling* scalings;
    std::int64_t size;
    const T* kept = nullptr;  // for rows one by one: what KernelsFor::keep has made of each network
    std::ptrdiff_t kept_size = 0;  // numbers of one of them
};

// Told what one network says of n rows, the first of which is row `start` of the table: means and
// standard deviations in standardised units (deviations null if not wanted).
struct Listener {
    void (*tell)(void* context, std::int64_t network, std::int64_t start, int n, const double* mean,
                 const double* deviation);
    void* context;
    bool deviations;  // whether they are wanted
};

// The entry points of one instruction set. `parameters`: mean network, then variance network; for
// each layer the weights [out][in], then the biases. `history`: two numbers an epoch (training
// loss, validation loss), or null.
template <class T> struct KernelsFor {
    Outcome (*train)(const Plan&, const Stage&, const Rows<T>& train, const Rows<T>& valid,
                     T* parameters, float* history, const Control&);
    // the scaling by rows[0 .. n) of the table; given up when the flag is set
    void (*measure)(const Table&, const std::int64_t* rows, std::int64_t n, const Scaling&,
                    const std::atomic<bool>& stop);
    // rows[0 .. n) of the table, or its first n from `start` on if rows is null, as networks see
    // them, `stride` numbers apart; what lies within 64 bytes behind a row is overwritten
    void (*standardise)(const Table&, const Scaling&, const std::int64_t* rows, std::int64_t start,
                        std::int64_t n, T* x, std::ptrdiff_t stride);
    // rows start .. start + n of the table, few enough to be kept at hand; network by network
    void (*predict)(const Plan&, const Ensemble<T>&, const Table&, std::int64_t start,
                    std::int64_t n, const Listener&);
    // what is made of each network's weights before it reads a row, to be kept where rows come one
    // by one: written to `kept`, if it is not null; returns the numbers for one network
    std::ptrdiff_t (*keep)(const Plan&, const Ensemble<T>&, const Table&, T* kept);
};

// A Gaussian process (mvenet._models.gaussian_process). A row is read as z = (x - center) / scale;
// the points are such rows, one column after the other, `stride` numbers apart, which is a multiple
// of any vector's length: what is there beyond the last point weighs nothing.
struct Process {
    const double *center, *scale, *points, *weights, *slope;
    double polynomial[3], intercept;
    std::ptrdiff_t stride;
};

// Rows of a Gaussian process that learns its scales, placed as the points of one that has (above),
// the linear kernel of each pair of them, (rows, rows), and what each kernel counts.
struct Pairs {
    const double *points, *linear;
    int columns;
    std::int64_t rows;
    std::ptrdiff_t stride;
    double amplitudes[3], slope;
};

// Mixtures of normals, one for each row: numbers of a member's rows stand together. A member has
// one weight for all rows, or one for each.
struct Mixtures {
    const double *means, *stds, *weights;
    std::int64_t members, rows;
    bool weights_by_row;
};

// What trees are grown from: rows of float32, `stride` of them apart, which is a multiple of any
// vector's length; zeros beyond the columns.
struct Sample {
    const float* x;
    std::ptrdiff_t stride;
    int columns;
    std::int64_t rows;
    const double* y;
    const double* weight;  // or null
    std::int64_t drawn;    // rows that each tree draws with replacement, or 0: all
};

// A tree as trees.hpp reads it.
struct Tree {
    std::vector<std::int32_t> feature, right;
    std::vector<float> threshold;
};

struct Kernels {
    const char* name;
    KernelsFor<float> single;
    KernelsFor<double> precise;
    void (*process)(const Process&, const Table&, std::int64_t begin, std::int64_t end,
                    double* out);
    void (*covariances)(const Pairs&, double* out);
    void (*pair_sums)(const Pairs&, const double* factor, const double* t, double* alpha,
                      double* diagonal, double* out);
    // where the probability below (sign 1) or above (sign -1) is `mass`, a normal's at `probit`
    void (*quantiles)(const Mixtures&, double mass, double sign, double probit, double* out);
    // the probability below each of the places, [place][row]
    void (*probabilities)(const Mixtures&, const double* places, std::int64_t count, bool by_row,
                          double sign, double* out);
    // the same below places that are those of all rows, to six decimals
    void (*shares_below)(const Mixtures&, const double* places, std::int64_t count, float* out);
    void (*crps)(const Mixtures&, const double* y, double* out);
    void (*partials)(const Mixtures&, const double* cells, std::int64_t count, const double* origin,
                     double* out);
    void (*moments)(const Mixtures&, double* out);
    void (*grow_tree)(const Sample&, std::uint64_t seed, Tree&);
};

const Kernels& kernels_baseline();
#ifdef MVENET_X86
const Kernels& kernels_avx2();
const Kernels& kernels_avx512();
#endif

}  // namespace mvenet
