// Included once by each kernel_*.cpp, which says for which instruction set.
#include "covariance.hpp"
#include "growing.hpp"
#include "measure.hpp"
#include "predictor.hpp"
#include "process.hpp"
#include "quantile.hpp"
#include "trainer.hpp"
