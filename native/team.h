// Phases of work on threads that stay awake between them: a phase takes less time than waking a thread.
#pragma once

#include <atomic>
#include <functional>

#include "plan.h"

namespace slim {

class Team {
public:
    using Task = std::function<void(int who, Index i)>;

    // Calls lead(team) on this thread, while up to `threads` − 1 others help with its phases.
    static void run(int threads, const std::function<void(Team&)>& lead);

    // A phase: calls task(who, i) for every i in [0, n), in any order, and returns when all have returned. Threads that
    // work at the same time have different numbers `who`, below the number of threads. task must not throw.
    void each(Index n, const Task& task);

private:
    void follow();
    bool take(int who);
    void wait_for(Index n);

    // On a busy machine a thread may lose its processor in the middle of a task, for longer than many phases take. Then
    // the leader makes the next phases alone, more of them each time.
    Index alone_ = 0, next_alone_ = 0;

    // The number of the phase in the upper half, and in the lower the tasks that no thread has taken. A thread takes a
    // task by lowering it, and only then reads task_: a phase cannot end before that task is done.
    std::atomic<std::uint64_t> ticket_{0};
    std::atomic<Index> done_{0};
    std::atomic<const Task*> task_{nullptr};
    std::atomic<int> joined_{0};
    std::atomic<bool> closed_{false};
};

}  // namespace slim
