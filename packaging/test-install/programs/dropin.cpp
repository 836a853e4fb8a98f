#include <redlock-cpp/redlock.h>

#include <cstdio>

int main()
{
    CRedLock manager;
    CLock lock;
    const bool taken = manager.AddServerUrl("127.0.0.1", 1) && manager.Lock("x", 1000, lock);
    std::printf("%s %s\n", RedLock_Version(), taken ? "taken" : "REDLOCK_UNREACHABLE");
}
