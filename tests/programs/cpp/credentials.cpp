// Users and passwords in redlock.hpp, against the servers given as host:port.
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "redlock.hpp"
#include "servers.hpp"

using redlock::Lease;
using redlock::Manager;
using redlock::Mutex;
using redlock::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const seconds ttl(20);

// A user that the servers know for as long as this object lives.
class User {
public:
    explicit User(const Servers &servers) : servers_(servers), name_(fresh_name("user")) {
        tell("ACL SETUSER " + name_ + " on >sesame ~* &* +@all");
    }
    ~User() { tell("ACL DELUSER " + name_); }
    User(const User &) = delete;
    User &operator=(const User &) = delete;

    const std::string &name() const { return name_; }

private:
    void tell(const std::string &command) const {
        for (size_t i = 0; i < servers_.count(); i++) {
            servers_.ask(i, command);
        }
    }

    const Servers &servers_;
    const std::string name_;
};

Manager manager_of(const Servers &servers) {
    Manager manager;
    manager.set_timeouts(seconds(20), milliseconds(500)); // the machine may be busy
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    return manager;
}

Status lock_once(Manager &manager, const std::string &name) {
    return manager.try_lock(name, ttl).status();
}

template <class Call>
bool is_refused(const Call &call) {
    try {
        call();
    } catch (const redlock::Error &error) {
        CHECK(std::string(error.what()).find("sesame") == std::string::npos);
        return error.status() == Status::InvalidArgument;
    }
    return false;
}

void a_user_and_a_password_let_in(const Servers &servers) {
    const User user(servers);
    Manager good = manager_of(servers);
    good.set_credentials(user.name(), "sesame");
    CHECK(lock_once(good, fresh_name("good")) == Status::Ok);

    Manager bad = manager_of(servers);
    bad.set_credentials(user.name(), "simsim");
    Lease lease = bad.try_lock(fresh_name("bad"), ttl);
    CHECK(lease.status() == Status::Unreachable);
    CHECK(lease.message().find("simsim") == std::string::npos);

    CHECK(setenv("REDLOCK_TEST_USER", user.name().c_str(), 1) == 0);
    CHECK(setenv("REDLOCK_TEST_PASSWORD", "sesame", 1) == 0);
    Manager told = manager_of(servers);
    told.set_credentials_from_env("REDLOCK_TEST_USER", "REDLOCK_TEST_PASSWORD");
    CHECK(unsetenv("REDLOCK_TEST_PASSWORD") == 0);
    CHECK(lock_once(told, fresh_name("told")) == Status::Ok);
    CHECK(is_refused([&] { told.set_credentials_from_env("", "REDLOCK_TEST_PASSWORD"); }));

    Manager none = manager_of(servers);
    none.set_credentials(user.name(), "sesame").set_credentials("", "");
    CHECK(lock_once(none, fresh_name("none")) == Status::Ok);
}

void what_holds_a_nul_is_refused(const Servers &servers) {
    const std::string bad("sesame\0street", 13);
    Manager manager = manager_of(servers);
    const auto callback = [](const std::string &) { return std::string("sesame"); };
    CHECK(is_refused([&] { manager.set_credentials(bad, "x"); }));
    CHECK(is_refused([&] { manager.set_credentials("x", bad); }));
    CHECK(is_refused([&] { manager.set_credentials_from_env(bad, "x"); }));
    CHECK(is_refused([&] { manager.set_credentials_from_env("x", bad); }));
    CHECK(is_refused([&] { manager.set_password_callback(bad, callback); }));
    CHECK(is_refused([&] { manager.set_tls_ca(bad); }));
    CHECK(is_refused([&] { manager.set_tls_certificate(bad, "x"); }));
    CHECK(is_refused([&] { manager.set_tls_certificate("x", bad); }));
    CHECK(is_refused([&] { manager.set_tls_server_name(bad); }));
    Manager moved = std::move(manager);
    CHECK(is_refused([&] { manager.set_password_callback(callback); })); // NOLINT: moved from
    CHECK(is_refused([&] { manager.set_credentials("x", "y"); }));
}

// The callback is called once for each server, however many threads connect.
void a_callback_is_asked_for_each_server(const Servers &servers) {
    const User user(servers);
    Manager manager = manager_of(servers);
    std::mutex here;
    std::multiset<std::string> asked;
    manager.set_password_callback(user.name(), [&](const std::string &server) {
        std::lock_guard<std::mutex> guard(here);
        asked.insert(server);
        return std::string("sesame");
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) {
        threads.emplace_back([&] {
            Lease lease = manager.lock(fresh_name("thread") + std::to_string(rand()), ttl);
            CHECK(lease.release() == Status::Ok);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    std::lock_guard<std::mutex> guard(here);
    CHECK(asked.size() >= servers.quorum() && asked.size() <= servers.count());
    for (const std::string &server : asked) {
        CHECK(asked.count(server) == 1);
        CHECK(server.find("127.0.0.1:") == 0);
    }
}

// No failure of a callback gets through the library, and a later, better callback is used.
void a_callback_may_fail(const Servers &servers) {
    const User user(servers);
    const std::vector<redlock::PasswordCallback> failing = {
        [](const std::string &) -> std::string { throw std::runtime_error("no password today"); },
        [](const std::string &) -> std::string { throw 7; },
        [](const std::string &) { return std::string(); },
        [](const std::string &) { return std::string("sesame\0street", 13); },
        [](const std::string &) { return std::string(1 << 20, 'x'); },
        [](const std::string &) { return std::string("simsim"); },
    };
    for (const redlock::PasswordCallback &callback : failing) {
        Manager manager = manager_of(servers);
        manager.set_password_callback(user.name(), callback);
        CHECK(lock_once(manager, fresh_name("failing")) == Status::Unreachable);
        manager.set_password_callback(user.name(),
                                      [](const std::string &) { return std::string("sesame"); });
        Lease lease = manager.try_lock(fresh_name("better"), ttl, seconds(30));
        CHECK(lease.held());
    }
    Manager nobody = manager_of(servers);
    nobody.set_password_callback(user.name(), failing[0]);
    nobody.set_password_callback(redlock::PasswordCallback());
    CHECK(lock_once(nobody, fresh_name("nobody")) == Status::Ok);
}

// C is told only that there is no password. The logger hears why.
void the_logger_is_told_why_there_is_no_password(const Servers &servers) {
    const User user(servers);
    const std::vector<std::pair<redlock::PasswordCallback, std::string>> failing = {
        {[](const std::string &) -> std::string { throw std::runtime_error("the vault is shut"); },
         "the vault is shut"},
        {[](const std::string &) -> std::string { throw 7; }, "an exception that is not a"},
        {[](const std::string &) { return std::string("sesame\0street", 13); }, "holds a NUL"},
        {[](const std::string &) { return std::string(1 << 20, 'x'); }, "is too long"},
    };
    for (const auto &it : failing) {
        Manager manager = manager_of(servers);
        std::mutex here;
        std::string told;
        int asked = 0, refused = 0, others = 0;
        const auto counted = [&](const std::string &server) {
            here.lock();
            asked++;
            here.unlock();
            return it.first(server);
        };
        manager.set_password_callback(user.name(), counted).set_logger([&](int level, const char *line) {
            std::lock_guard<std::mutex> guard(here);
            told += std::to_string(level) + ' ' + line + '\n';
            (std::string(line).find("no password for ") == 0 ? refused : others)++;
        });
        // The line of the library about a server comes after the reason.
        for (bool all_are_told = false; !all_are_told;) {
            CHECK(lock_once(manager, fresh_name("told")) == Status::Unreachable);
            std::lock_guard<std::mutex> guard(here);
            all_are_told = others >= static_cast<int>(servers.count());
            CHECK(refused <= asked); // each is told once
            CHECK(!all_are_told || told.find(it.second) != std::string::npos);
            CHECK(!all_are_told || told.find("1 no password for ") != std::string::npos);
            CHECK(told.find("sesame") == std::string::npos && told.find("xxx") == std::string::npos);
        }
        manager.set_logger(redlock::Logger());
    }
}

// The captures of a callback live as long as any object that may call it.
void a_callback_outlives_its_manager(const Servers &servers) {
    const User user(servers);
    const auto word = std::make_shared<std::string>("sesame");
    const std::string name = fresh_name("outlives");
    {
        std::unique_ptr<Mutex> mutex;
        {
            Manager manager = manager_of(servers);
            manager.set_password_callback(user.name(), [word](const std::string &) { return *word; });
            mutex.reset(new Mutex(manager, name, ttl));
        }
        CHECK(word.use_count() == 2);
        std::lock_guard<Mutex> guard(*mutex);
        CHECK(mutex->held());
    }
    CHECK(word.use_count() == 1);
    CHECK(servers.all_come_to_lack(name));
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    a_user_and_a_password_let_in(servers);
    what_holds_a_nul_is_refused(servers);
    a_callback_is_asked_for_each_server(servers);
    a_callback_may_fail(servers);
    the_logger_is_told_why_there_is_no_password(servers);
    a_callback_outlives_its_manager(servers);
    return 0;
}
