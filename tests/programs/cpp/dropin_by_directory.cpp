// With the include directories include/redlock-cpp and include, in this order. Then "redlock.h" is
// the header of CRedLock, as in old programs, and redlock.hpp finds the C header all the same.
#include "redlock.h"
#if __cplusplus >= 201103L
#include "redlock.hpp"
#endif

int main() {
    CRedLock dlm;
    CLock lock;
    return dlm.Initialize() && !dlm.Lock("x", 1000, lock) && dlm.Unlock(lock) ? 0 : 1;
}
