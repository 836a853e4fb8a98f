// Must compile with -DCASE=0 and must not with any other: 1 to 5 in all dialects, 6 to 11 from
// C++11 on.
#include "redlock-cpp/redlock.h"
#if __cplusplus >= 201103L
#include "redlock.hpp"
#endif

static void by_value(CLock) {}

int main() {
    CRedLock dlm;
    CLock lock;
    (void)by_value;
#if CASE == 1
    CLock copy(lock);
#elif CASE == 2
    CLock copy;
    copy = lock;
#elif CASE == 3
    by_value(lock);
#elif CASE == 4
    CRedLock copy(dlm);
#elif CASE == 5
    CRedLock copy;
    copy = dlm;
#endif
#if __cplusplus >= 201103L
    redlock::Lease lease;
    redlock::Manager manager;
    redlock::Mutex mutex(manager, "x", std::chrono::seconds(1));
#if CASE == 6
    redlock::Lease copy(lease);
#elif CASE == 7
    redlock::Lease copy;
    copy = lease;
#elif CASE == 8
    redlock::Manager copy(manager);
#elif CASE == 9
    redlock::Manager copy;
    copy = manager;
#elif CASE == 10
    redlock::Mutex copy(mutex);
#elif CASE == 11
    redlock::Mutex moved(std::move(mutex));
#endif
#endif
    return 0;
}
