// Must compile as it is. With -DCOPIES, no line that ends with "cannot be" may compile: no copies, and no
// several texts where the library takes one, because in braces they would be one std::string of two pointers.
#include "redlock-cpp/redlock.h"
#if __cplusplus >= 201103L
#include "redlock.hpp"
#endif

static void by_value(CLock) {}

int main() {
    CRedLock dlm;
    CLock lock;
    (void)by_value;
#ifdef COPIES
    CLock other_lock(lock);  // cannot be
    other_lock = lock;       // cannot be
    by_value(lock);          // cannot be
    CRedLock other_dlm(dlm); // cannot be
    other_dlm = dlm;         // cannot be
#endif
#if __cplusplus >= 201103L
    redlock::Lease lease;
    redlock::Manager manager;
    redlock::Mutex mutex(manager, "x", std::chrono::seconds(1));
#ifdef COPIES
    redlock::Lease other_lease(lease);       // cannot be
    other_lease = lease;                     // cannot be
    redlock::Manager other_manager(manager); // cannot be
    other_manager = manager;                 // cannot be
    redlock::Mutex other_mutex(mutex);       // cannot be
    redlock::Mutex moved(std::move(mutex));  // cannot be
    const std::chrono::seconds ttl(1);
    manager.add_server({"a", "b"});                              // cannot be
    (void)manager.lock_shared({"a", "b"}, ttl);                  // cannot be
    (void)manager.try_lock_shared({"a", "b"}, ttl);              // cannot be
    (void)manager.try_lock_shared({"a", "b"}, ttl, ttl);         // cannot be
    (void)manager.is_locked({"a", "b"});                         // cannot be
    (void)manager.inspect({"a", "b"});                           // cannot be
    redlock::SharedMutex shared(manager, {"a", "b"}, ttl);       // cannot be
    redlock::SharedMutex kept(manager, {"a", "b"}, ttl, redlock::KeepAlive()); // cannot be
    redlock::Semaphore semaphore(manager, {"a", "b"}, 2, ttl);   // cannot be
    redlock::Semaphore lasting(manager, {"a", "b"}, 2, ttl, redlock::KeepAlive()); // cannot be
#endif
#endif
    return 0;
}
