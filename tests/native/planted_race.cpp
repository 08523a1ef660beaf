// A data race on purpose, through the core's own threads: if `make tsan` does not report it, its silence means nothing.
#include <chrono>
#include <thread>

#include "parallel.h"

extern "C" int planted_race(int helpers) {
    int count = 0;  // neither atomic nor behind a lock
    slim::run_together(helpers, [&count] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that the helpers start in time
        ++count;
    });
    return count;
}
