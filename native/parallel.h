// Work over a range, on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "plan.h"

namespace slim {

// Calls work(state, begin, end) for blocks of [0, n), taken in turn by the given number of threads, each with a state of
// its own from work.state(). Threads live for one call, so there is none to lose in a fork. The first exception of any
// of them is thrown again here.
template <class Work>
void in_blocks(Index n, Index block, int threads, const Work& work) {
    std::atomic<Index> next{0};
    std::exception_ptr failure;
    std::mutex lock;
    const auto worker = [&] {
        try {
            auto state = work.state();
            for (Index begin; (begin = next.fetch_add(block)) < n;) work(state, begin, std::min(begin + block, n));
        } catch (...) {
            const std::lock_guard<std::mutex> guard(lock);
            if (!failure) failure = std::current_exception();
            next.store(n);
        }
    };
    const Index blocks = (n + block - 1) / block;
    std::vector<std::thread> others;
    for (Index i = 1; i < std::min<Index>(threads, blocks); ++i) {
        try {
            others.emplace_back(worker);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: those there are do the work
        }
    }
    worker();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace slim
