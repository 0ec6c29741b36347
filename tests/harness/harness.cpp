// The engine without Python: trains a fleet on a table from standard input and prints what it
// found.
//
// For processors and sanitizers with which Python is not to be had. check.py writes the input and
// compares the output with the reference.
//
// Input: threads, networks, rows, columns, batch size, epochs; the sizes of each network, after how
// many there are; then the table, row by row, the target last. Output: instruction set, then for
// each network its parameters, and the mean and deviation of every row.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "ensemble.hpp"
#include "fleet.hpp"

namespace {

template <class T> T number() {
    double value = 0;
    if (std::scanf("%lf", &value) != 1) std::abort();
    return T(value);
}

std::vector<int> sizes() {
    std::vector<int> found(number<std::size_t>());
    for (int& size : found) size = number<int>();
    return found;
}

void print(const std::vector<double>& values) {
    for (const double value : values) std::printf("%.17g ", value);
    std::printf("\n");
}

}  // namespace

int main() {
    using namespace mvenet;
    const int threads = number<int>();
    const auto networks = number<std::size_t>(), rows = number<std::size_t>();
    const auto columns = number<std::size_t>();
    Plan plan;
    plan.inputs = int(columns);
    plan.activation = Activation::silu;
    plan.batch_size = number<std::int64_t>();
    const auto epochs = number<std::int64_t>();
    const std::vector<int> mean_sizes = sizes(), variance_sizes = sizes();
    plan.mean = {mean_sizes.data(), int(mean_sizes.size()) - 1};
    plan.variance = {variance_sizes.data(), int(variance_sizes.size()) - 1};
    std::vector<double> x, y;
    std::vector<std::int64_t> order;
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) x.push_back(number<double>());
        y.push_back(number<double>());
        order.push_back(std::int64_t(r));
    }
    const Table table{
        x.data(), true,   std::int64_t(rows), int(columns), std::ptrdiff_t(columns), 1,
        y.data(), nullptr};
    std::size_t parameters = 0;
    for (const auto* shape : {&mean_sizes, &variance_sizes})
        for (std::size_t i = 1; i < shape->size(); ++i)
            parameters += std::size_t((*shape)[i]) * std::size_t((*shape)[i - 1] + 1);

    std::vector<Job> jobs;
    for (std::size_t k = 0; k < networks; ++k) {
        Job first, second;
        first.stage.mode = Mode::warmup;
        first.stage.seed = second.stage.seed = k;
        first.stage.epochs = second.stage.epochs = epochs;
        second.stage.fresh = false;
        second.stage.init_var_bias = true;
        second.stage.schedule = Schedule::cosine;
        second.stage.reg_mean = second.stage.reg_var = 1e-3;
        second.parent = std::int64_t(2 * k);
        jobs.push_back(first);
        jobs.push_back(second);
    }
    std::vector<std::vector<double>> theta(jobs.size(), std::vector<double>(parameters));
    std::vector<Outcome> outcomes(jobs.size());
    std::vector<Result<double>> results;
    for (std::size_t j = 0; j < jobs.size(); ++j)
        results.push_back({theta[j].data(), nullptr, &outcomes[j]});
    std::vector<double> x_mean(columns), x_scale(columns);
    double y_mean = 0, y_scale = 0;
    const std::vector<Scaling> scalings{
        {x_mean.data(), x_scale.data(), &y_mean, &y_scale, __builtin_inf()}};
    const std::vector<Subset> subsets{{order.data(), order.data(), std::int64_t(rows), 0}};
    const KernelsFor<double>& kernels = kernels_baseline().precise;
    train_fleet<double>(kernels, plan, table, subsets, jobs, scalings, results,
                        std::int64_t(parameters), threads, [](std::int64_t) { return true; });
    std::printf("%s\n", kernels_baseline().name);
    for (std::size_t k = 0; k < networks; ++k) {
        if (outcomes[2 * k + 1].status != Status::trained) return 1;
        print(theta[2 * k + 1]);
        const double* const its[] = {theta[2 * k + 1].data()};
        std::vector<double> mean(rows), deviation(rows);
        predict_ensemble<double>(kernels, plan, table, {its, scalings.data(), 1}, threads,
                                 {mean.data(), deviation.data()});
        print(mean);
        print(deviation);
    }
}
