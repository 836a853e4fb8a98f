// Together with two_units_b.cpp one program: both units include both headers, in either order.
// Prints nothing.
#include "redlock-cpp/redlock.h"
#if __cplusplus >= 201103L
#include "redlock.hpp"
#endif

bool unit_b_works();

int main() {
    CRedLock dlm;
    CLock lock;
    bool works = !dlm.Lock("x", 1000, lock) && dlm.Unlock(lock) && unit_b_works();
#if __cplusplus >= 201103L
    try {
        redlock::Manager().connect();
        works = false;
    } catch (const redlock::Error &error) {
        works = works && error.status() == redlock::Status::NoServers;
    }
#endif
    return works ? 0 : 1;
}
