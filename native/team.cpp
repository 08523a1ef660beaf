#include "team.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "parallel.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace slim {
namespace {

constexpr int kSpins = 2000;      // looks before a thread lets others have the processor
constexpr int kYields = 200;      // times that it does, before it sleeps between looks
constexpr auto kNap = std::chrono::microseconds(200);
constexpr auto kLong = std::chrono::microseconds(500);  // to wait for the last task of a phase
constexpr Index kFewAlone = 32, kManyAlone = 8192;      // phases that are made alone after a long wait

class Patience {
public:
    void wait() {
        if (++looks_ > kSpins + kYields) return std::this_thread::sleep_for(kNap);
        if (looks_ > kSpins) return std::this_thread::yield();
#if defined(__SSE2__) || defined(_M_X64)
        _mm_pause();
#endif
    }
    void renew() { looks_ = 0; }

private:
    int looks_ = 0;
};

}  // namespace

void Team::run(int threads, const std::function<void(Team&)>& lead) {
    Team team;
    if (threads <= 1) return lead(team);
    const std::thread::id leader = std::this_thread::get_id();
    std::exception_ptr failure;
    run_together(threads - 1, [&] {
        if (std::this_thread::get_id() != leader) return team.follow();
        try {
            lead(team);
        } catch (...) {
            failure = std::current_exception();
        }
        team.closed_.store(true, std::memory_order_release);
    });
    if (failure) std::rethrow_exception(failure);
}

void Team::each(Index n, const Task& task) {
    if (n == 0) return;
    if (alone_ > 0) {
        --alone_;
        for (Index i = 0; i < n; ++i) task(0, i);
        return;
    }
    done_.store(0, std::memory_order_relaxed);
    task_.store(&task, std::memory_order_relaxed);
    const std::uint64_t phase = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
    ticket_.store(phase << 32 | static_cast<std::uint64_t>(n), std::memory_order_release);
    take(0);
    if (done_.load(std::memory_order_acquire) < n) wait_for(n);
}

void Team::wait_for(Index n) {
    const auto start = std::chrono::steady_clock::now();
    for (Patience patience; done_.load(std::memory_order_acquire) < n;) patience.wait();
    if (std::chrono::steady_clock::now() - start < kLong) {
        next_alone_ = std::max<Index>(0, next_alone_ - 1);
        return;
    }
    next_alone_ = std::min(std::max(kFewAlone, 4 * next_alone_), kManyAlone);
    alone_ = next_alone_;
}

void Team::follow() {
    const int who = joined_.fetch_add(1) + 1;
    Patience patience;
    while (!closed_.load(std::memory_order_acquire)) {
        if (take(who)) patience.renew();
        else patience.wait();
    }
}

bool Team::take(int who) {
    bool any = false;
    for (;;) {
        std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
        const Index left = static_cast<Index>(ticket & 0xffffffffu);
        if (left == 0) return any;
        if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) continue;
        (*task_.load(std::memory_order_acquire))(who, left - 1);
        done_.fetch_add(1, std::memory_order_acq_rel);
        any = true;
    }
}

}  // namespace slim
