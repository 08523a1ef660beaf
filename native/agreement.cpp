#include "agreement.h"

#include <algorithm>

#include "parallel.h"

namespace slim {
namespace {

constexpr Index kColumns = 16;  // in the block of a thread

struct Work {
    const float* a;
    Index rows;
    const float* b;
    Index columns, n;
    const float* weights;
    double* counts;

    struct State {};
    State state() const { return {}; }

    void operator()(State&, Index begin, Index end) const {
        for (Index r = 0; r < rows; ++r) std::fill(counts + r * columns + begin, counts + r * columns + end, 0.0);
        best_instruction_set().agreement(a, rows, b + begin * n, end - begin, n, weights, counts + begin, columns);
    }
};

}  // namespace

void agreement(const float* a, Index rows, const float* b, Index columns, Index n, const float* weights, double* counts,
               int threads) {
    in_blocks(columns, kColumns, threads, Work{a, rows, b, columns, n, weights, counts});
}

}  // namespace slim
