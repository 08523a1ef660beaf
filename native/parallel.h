// Loops over a range on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>

#include "plan.h"

namespace slim {

// Runs task() on this thread and on up to `helpers` others at the same time, and returns when all of them have finished.
// Helpers that have not started when this thread finishes are not waited for. task must not throw.
void run_together(int helpers, const std::function<void()>& task);

// Calls work(state, begin, end) for blocks of [0, n), which the given number of threads take in turn, each with its own
// work.state(). Rethrows the first exception of any thread.
template <class Work>
void in_blocks(Index n, Index block, int threads, const Work& work) {
    std::atomic<Index> next{0};
    std::exception_ptr failure;
    std::mutex lock;
    const auto task = [&] {
        try {
            if (next.load() >= n) return;
            auto state = work.state();
            for (Index begin; (begin = next.fetch_add(block)) < n;) work(state, begin, std::min(begin + block, n));
        } catch (...) {
            const std::lock_guard<std::mutex> guard(lock);
            if (!failure) failure = std::current_exception();
            next.store(n);
        }
    };
    const Index blocks = (n + block - 1) / block;
    const int helpers = static_cast<int>(std::min<Index>(threads, blocks)) - 1;
    if (helpers > 0) run_together(helpers, task);
    else task();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace slim
