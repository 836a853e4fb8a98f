// The guarantees of redlock::Semaphore, against the servers given as host:port.
#include <atomic>
#include <thread>
#include <type_traits>
#include <vector>

#include "redlock.hpp"
#include "servers.hpp"

using redlock::Lease;
using redlock::Manager;
using redlock::Semaphore;
using redlock::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

static_assert(!std::is_copy_constructible<Semaphore>::value, "a Semaphore is not copied");
static_assert(!std::is_move_constructible<Semaphore>::value, "a Semaphore stays where it is");
static_assert(noexcept(std::declval<Semaphore &>().release()), "guards release in destructors");
static_assert((Semaphore::max)() == 256, "as many as the library has");

const seconds ttl(20);

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    return manager;
}

void so_many_are_acquired_and_no_more(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("permits");
    Semaphore semaphore(manager, name, 3, ttl);
    CHECK(semaphore.release() == Status::Lost);
    semaphore.acquire();
    CHECK(semaphore.try_acquire());
    CHECK(semaphore.try_acquire_for(seconds(5)));
    CHECK(semaphore.taken() == 3);
    CHECK(!semaphore.try_acquire());
    CHECK(semaphore.status() == Status::Taken);
    CHECK(semaphore.message().find("3 permits taken") != std::string::npos);
    CHECK(!semaphore.try_acquire_for(milliseconds(30)));
    CHECK(!semaphore.try_acquire_until(std::chrono::steady_clock::now() + milliseconds(30)));
    // Permits of another program count, too, and a lock of the resource uses one.
    Manager other = manager_of(servers);
    Semaphore theirs(other, name, 3, ttl);
    CHECK(!theirs.try_acquire());
    CHECK(semaphore.release() == Status::Ok);
    CHECK(theirs.try_acquire());
    CHECK(theirs.release() == Status::Ok);
    for (int i = 0; i < 2; i++) {
        CHECK(semaphore.release() == Status::Ok);
    }
    CHECK(semaphore.taken() == 0);
    const Lease plain = manager.lock(name, ttl);
    CHECK(semaphore.taken() == 1);
}

void a_permit_is_a_lease(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("permit");
    Semaphore semaphore(manager, name, 2, ttl);
    {
        Lease one = semaphore.permit();
        Lease two = semaphore.permit(milliseconds(-1));
        CHECK(one && two && one.resource() == name);
        CHECK(one.extend(ttl * 2) && one.remaining() > ttl);
        CHECK(two.confirm(seconds(1)));
        Lease three = semaphore.permit();
        CHECK(!three && three.status() == Status::Taken);
        CHECK(two.release() == Status::Ok);
    }
    CHECK(semaphore.taken() == 0);
    Semaphore kept(manager, name, 2, milliseconds(2000), redlock::KeepAlive());
    kept.acquire();
    std::this_thread::sleep_for(milliseconds(3000)); // longer than it would last; a busy machine keeps it in time
    CHECK(kept.taken() == 1);
    CHECK(kept.release() == Status::Ok);
}

void what_is_wrong_is_thrown(const Servers &servers) {
    Manager manager = manager_of(servers);
    for (const int permits : {-1, 0, 257}) {
        Semaphore semaphore(manager, "wrong", permits, ttl);
        try {
            semaphore.acquire();
            CHECK(false);
        } catch (const redlock::Error &error) {
            CHECK(error.status() == Status::InvalidArgument);
            CHECK(std::string(error.what()).find("1 to 256") != std::string::npos);
        }
    }
}

void threads_share_it(const Servers &servers) {
    Manager manager = manager_of(servers);
    Semaphore semaphore(manager, fresh_name("shared"), 3, ttl);
    std::atomic<int> inside(0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) {
        threads.emplace_back([&] {
            for (int j = 0; j < 20; j++) {
                semaphore.acquire();
                CHECK(inside.fetch_add(1) < 3);
                std::this_thread::yield();
                inside.fetch_sub(1);
                CHECK(semaphore.release() == Status::Ok);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    so_many_are_acquired_and_no_more(servers);
    a_permit_is_a_lease(servers);
    what_is_wrong_is_thrown(servers);
    threads_share_it(servers);
    return 0;
}
