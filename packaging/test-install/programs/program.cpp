#include <redlock.hpp>

#include <cstdio>

int main()
{
    redlock::Manager manager{"redis://127.0.0.1:1"};
    const auto lease = manager.try_lock("x", std::chrono::seconds(1), std::chrono::seconds(0));
    std::printf("%s %s\n", RedLock_Version(), redlock::name(lease.status()));
}
