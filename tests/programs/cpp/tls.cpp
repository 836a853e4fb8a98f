// The TLS settings of redlock.hpp. Given: the authority's PEM file, a client's certificate and its
// key, and servers that require it, as host:port.
#include <mutex>

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

struct Given {
    std::string ca, certificate, key;
    std::vector<std::string> servers;

    Manager manager() const {
        Manager made;
        made.set_timeouts(seconds(20), milliseconds(500)); // the machine may be busy
        for (const std::string &server : servers) {
            made.add_server("rediss://" + server);
        }
        return made;
    }
};

Status lock_once(Manager &manager) { return manager.try_lock(fresh_name("tls"), ttl).status(); }

void both_sides_show_who_they_are(const Given &given) {
    Manager manager = given.manager();
    manager.set_tls_ca(given.ca).set_tls_certificate(given.certificate, given.key).connect();
    const std::string name = fresh_name("guarded");
    Mutex mutex(manager, name, ttl);
    {
        std::lock_guard<Mutex> guard(mutex);
        CHECK(mutex.held() && mutex.confirm() && manager.is_locked(name));
    }
    CHECK(mutex.last_unlock_status() == Status::Ok && !manager.is_locked(name));
}

void who_does_not_prove_it_is_not_believed(const Given &given) {
    Manager nobodys_roots = given.manager();
    nobodys_roots.set_tls_certificate(given.certificate, given.key);
    CHECK(lock_once(nobodys_roots) == Status::Unreachable);

    Manager misnamed = given.manager();
    misnamed.set_tls_ca(given.ca).set_tls_certificate(given.certificate, given.key);
    misnamed.set_tls_server_name("elsewhere.example");
    CHECK(lock_once(misnamed) == Status::Unreachable);

    Manager nameless = given.manager();
    nameless.set_tls_ca(given.ca);
    CHECK(lock_once(nameless) == Status::Unreachable);

    // The settings are reset.
    Manager well = given.manager();
    well.set_tls_certificate(given.certificate, given.key).set_tls_server_name("elsewhere.example");
    well.set_tls_server_name("").set_tls_ca(given.ca);
    CHECK(lock_once(well) == Status::Ok);
}

void who_asks_for_no_proof_gets_none(const Given &given) {
    Manager trusting = given.manager();
    trusting.set_tls_certificate(given.certificate, given.key).set_tls_insecure_skip_verify(true);
    CHECK(lock_once(trusting) == Status::Ok);

    Manager again = given.manager();
    again.set_tls_certificate(given.certificate, given.key);
    again.set_tls_insecure_skip_verify(true).set_tls_insecure_skip_verify(false);
    CHECK(lock_once(again) == Status::Unreachable);
}

template <class Call>
bool is_refused(const Call &call) {
    try {
        call();
    } catch (const redlock::Error &error) {
        return error.status() == Status::InvalidArgument;
    }
    return false;
}

void files_of_no_use_are_refused(const Given &given) {
    Manager manager = given.manager();
    CHECK(is_refused([&] { manager.set_tls_ca("/nowhere/ca.pem"); }));
    CHECK(is_refused([&] { manager.set_tls_ca(given.key); }));
    CHECK(is_refused([&] { manager.set_tls_certificate(given.certificate, given.ca); }));
    CHECK(is_refused([&] { manager.set_tls_certificate(given.certificate, ""); }));
    CHECK(is_refused([&] { manager.set_tls_certificate("", given.key); }));
    CHECK(is_refused([&] { manager.set_tls_server_name("not a name"); }));
}

} // namespace

int main(int argc, char **argv) {
    CHECK(argc > 4);
    const Given given{argv[1], argv[2], argv[3], std::vector<std::string>(argv + 4, argv + argc)};
    both_sides_show_who_they_are(given);
    who_does_not_prove_it_is_not_believed(given);
    who_asks_for_no_proof_gets_none(given);
    files_of_no_use_are_refused(given);
    return 0;
}
