// What the two halves of the engine say to each other.
//
// The arithmetic (simd, mlp, objective, adam, trainer) is compiled once per instruction set, each
// time in a namespace of its own; the rest (fleet, bindings) is compiled once. This header is all
// that both sides see: plain structs of numbers and pointers, no code. Nothing here may pull in a
// standard container, because an inline function compiled for AVX-512 could then be linked into the
// baseline.
#pragma once

#include <atomic>
#include <cstdint>

namespace mvenet {

// Each kind of choice is listed here once, with its name in Python; enums, bindings and the
// switches that must know all of them follow from the list.
#define MVENET_ACTIVATIONS(X) X(elu, "elu") X(relu, "relu") X(tanh, "tanh") X(silu, "silu")
#define MVENET_OBJECTIVES(X) X(nll, "nll") X(beta_nll, "beta-nll") X(faithful, "faithful")
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

// What all networks of a fleet have in common.
struct Plan {
    int inputs = 0;  // columns of a row; a network has as many inputs, or none
    Shape mean;
    Shape variance;
    Activation activation = Activation::elu;
    Objective objective = Objective::nll;
    double beta = 0.5;
    std::int64_t batch_size = 32;
    double clip_value = 5.0;  // infinity: no clipping
    double beta2 = 0.999;     // decay of Adam's second moment
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
    double learning_rate = 1e-3;
    double reg_mean = 0.0;
    double reg_var = 0.0;
};

// Standardised rows, n x inputs without gaps, readable for 64 bytes past the end.
template <class T> struct Rows {
    const T* x = nullptr;
    const T* y = nullptr;
    const T* weight = nullptr;  // mean one, or null: all one
    std::int64_t n = 0;
};

struct Control {
    const std::atomic<bool>* stop;
    std::atomic<std::int64_t>* steps;  // gradient steps done by the fleet so far
};

struct Outcome {
    Status status;
    std::int64_t epochs;
    std::int64_t steps;
};

// The entry points of one instruction set. `parameters`: mean network, then variance network; for
// each layer the weights [out][in], then the biases. `history`: two numbers an epoch (training
// loss, validation loss), or null.
template <class T> struct KernelsFor {
    Outcome (*train)(const Plan&, const Stage&, const Rows<T>& train, const Rows<T>& valid,
                     T* parameters, float* history, const Control&);
    // mean and variance of n standardised rows, in standardised units
    void (*predict)(const Plan&, const T* parameters, const T* x, std::int64_t n, T* mean,
                    T* variance);
};

struct Kernels {
    const char* name;
    KernelsFor<float> single;
    KernelsFor<double> precise;
    double (*peak)(double seconds);  // fused multiply-adds of this core, in FLOP/s, float32
};

const Kernels& kernels_baseline();
#ifdef MVENET_X86
const Kernels& kernels_avx2();
const Kernels& kernels_avx512();
#endif

}  // namespace mvenet
