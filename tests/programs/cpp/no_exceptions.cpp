// A C++ program without exceptions and without type information takes locks by redlock.h, from the
// servers given as host:port.
#include <memory>

#include "redlock.h"
#include "servers.hpp"

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(__GXX_RTTI)
#error "this is to be compiled with -fno-exceptions -fno-rtti"
#endif

namespace {

struct Free {
    void operator()(RedLock *rl) const noexcept { RedLock_Free(rl); }
    void operator()(RedLockLease *lease) const noexcept { RedLockLease_Free(lease); }
};

// A guard as programs without exceptions write it.
class Guard {
public:
    Guard(RedLock *rl, const std::string &resource)
        : rl_(rl), lease_(RedLockLease_New()),
          status_(RedLock_Lock(rl, resource.c_str(), 20000, lease_.get())) {}
    ~Guard() { RedLock_Unlock(rl_, lease_.get()); }
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

    RedLockStatus status() const { return status_; }
    bool held() const { return RedLockLease_IsHeld(lease_.get()); }

private:
    RedLock *rl_;
    std::unique_ptr<RedLockLease, Free> lease_;
    RedLockStatus status_;
};

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    const std::unique_ptr<RedLock, Free> rl(RedLock_New());
    for (size_t i = 0; i < servers.count(); i++) {
        CHECK(RedLock_AddServerUrl(rl.get(), servers.host(i), servers.port(i)) == REDLOCK_OK);
    }
    const std::string name = fresh_name("plain");
    {
        const Guard guard(rl.get(), name);
        CHECK(guard.status() == REDLOCK_OK && guard.held());
        CHECK(servers.having(name, "") < servers.quorum());
        CHECK(RedLock_SetRetry(rl.get(), 1, 0) == REDLOCK_OK);
        const Guard rival(rl.get(), name);
        CHECK(rival.status() == REDLOCK_TAKEN && !rival.held());
    }
    CHECK(servers.all_come_to_lack(name));
    CHECK(RedLock_AddServerUrl(rl.get(), "nonsense://", 0) == REDLOCK_INVALID_ARGUMENT);
    return 0;
}
