// See two_units_a.cpp.
#if __cplusplus >= 201103L
#include "redlock.hpp"
#endif
#include "redlock-cpp/redlock.h"

bool unit_b_works();

bool unit_b_works() {
    CRedLock dlm;
    CLock lock;
    bool works = !dlm.ContinueLock("x", 1000, lock) && dlm.Initialize();
#if __cplusplus >= 201103L
    redlock::Lease lease;
    works = works && lease.release() == redlock::Status::Lost;
#endif
    return works;
}
