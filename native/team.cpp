#include "team.h"

#include <exception>
#include <thread>

#include "parallel.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace slim {
namespace {

constexpr int kSpins = 2000;  // looks before a thread lets others have the processor

class Patience {
public:
    void wait() {
        if (++looks_ > kSpins) {
            std::this_thread::yield();
            return;
        }
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
    done_.store(0, std::memory_order_relaxed);
    task_.store(&task, std::memory_order_relaxed);
    const std::uint64_t phase = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
    ticket_.store(phase << 32 | static_cast<std::uint64_t>(n), std::memory_order_release);
    take(0);
    Patience patience;
    while (done_.load(std::memory_order_acquire) < n) patience.wait();
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
