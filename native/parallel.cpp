// A pool of threads that sleep between calls: waking a thread takes a fifth of the time of starting one.
#include "parallel.h"

#include <condition_variable>
#include <deque>
#include <system_error>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace slim {
namespace {

constexpr int kPatience = 50;

class Pool {
public:
    void run(int helpers, const std::function<void()>& task) {
        Job job{&task, helpers, {0}};
        {
            const std::lock_guard<std::mutex> guard(lock_);
            grow(helpers);
            jobs_.push_back(&job);
        }
        helpers == 1 ? wake_.notify_one() : wake_.notify_all();
        task();
        {
            const std::lock_guard<std::mutex> guard(lock_);
            withdraw(&job);
        }
        // The others finish within the time of one block, so waiting a moment is cheaper than sleeping.
        for (int i = 0; i < kPatience && job.inside.load() > 0; ++i) std::this_thread::yield();
        std::unique_lock<std::mutex> guard(lock_);
        done_.wait(guard, [&job] { return job.inside.load() == 0; });
    }

private:
    struct Job {
        const std::function<void()>* task;
        int open;                 // helpers that may still join
        std::atomic<int> inside;  // helpers working on it
    };

    // The pool lives as long as the process, so its threads are never joined.
    void grow(int helpers) {
        try {
            for (; threads_ < helpers; ++threads_) std::thread([this] { serve(); }).detach();
        } catch (const std::system_error&) {
            // no more threads available: the existing ones and the caller do the work
        }
    }

    void serve() {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            wake_.wait(guard, [this] { return !jobs_.empty(); });
            Job* job = jobs_.front();
            if (--job->open == 0) jobs_.pop_front();
            ++job->inside;
            guard.unlock();
            (*job->task)();
            guard.lock();
            if (--job->inside == 0) done_.notify_all();
        }
    }

    void withdraw(Job* job) {
        const auto at = std::find(jobs_.begin(), jobs_.end(), job);
        if (at != jobs_.end()) jobs_.erase(at);
    }

    std::mutex lock_;
    std::condition_variable wake_, done_;
    std::deque<Job*> jobs_;
    int threads_ = 0;
};

std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
#if !defined(_WIN32)
    // A forked child has only its own thread: it drops the pool, and creates a new one when it needs it.
    static const int watched = pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); });
    (void)watched;
#endif
    Pool* mine = the_pool.load();
    if (!mine) {
        Pool* fresh = new Pool;
        if (the_pool.compare_exchange_strong(mine, fresh)) return *fresh;
        delete fresh;
    }
    return *mine;
}

}  // namespace

void run_together(int helpers, const std::function<void()>& task) { pool().run(helpers, task); }

}  // namespace slim
