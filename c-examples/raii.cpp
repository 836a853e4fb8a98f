/*
 * The lock in the usual C++ forms: a mutex for the standard guards, and a lease that is its own guard.
 *
 *     raii [host:port ...]
 */
#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "redlock.hpp"

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/* Every way out of this function releases the lock, including an exception. */
void send_invoice(redlock::Mutex &mutex, bool printer_is_out_of_paper) {
    std::lock_guard<redlock::Mutex> guard(mutex);
    std::cout << "locked for " << mutex.remaining().count() << " ms\n";
    if (printer_is_out_of_paper) {
        throw std::runtime_error("out of paper");
    }
}

/* A caller that cannot wait without limit gives a time. */
void send_if_free(redlock::Mutex &mutex) {
    std::unique_lock<redlock::Mutex> guard(mutex, milliseconds(300));
    if (guard) {
        std::cout << "had it within 300 ms\n";
    } else {
        std::cout << "somebody else is at it: " << mutex.message() << '\n';
    }
}

/* The owner of the object holds the lease: the object can be returned, kept and moved. */
redlock::Lease begin_report(redlock::Manager &servers) {
    redlock::Lease lease = servers.lock("report:2026", seconds(10));
    std::cout << "report begun, " << lease.validity().count() << " ms\n";
    return lease;
}

void run(redlock::Manager &servers) {
    redlock::Mutex mutex(servers, "invoice:42", seconds(10));

    send_invoice(mutex, false);
    try {
        send_invoice(mutex, true);
    } catch (const std::runtime_error &error) {
        std::cout << "not sent: " << error.what() << '\n';
    }
    send_if_free(mutex);
    {
        std::lock_guard<redlock::Mutex> guard(mutex);
        redlock::Mutex elsewhere(servers, "invoice:42", seconds(10));
        send_if_free(elsewhere);
    }

    redlock::Lease report = begin_report(servers);
    if (!report.extend(seconds(20)) || !report.confirm(seconds(15))) {
        throw redlock::Error(report.status(), report.message());
    }
    std::cout << "report kept, " << report.validity().count() << " ms\n";
}

} // namespace

int main(int argc, char **argv) {
    std::vector<std::string> addresses(argv + 1, argv + argc);
    if (addresses.empty()) {
        addresses = {"127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"};
    }
    try {
        redlock::Manager servers;
        for (const std::string &address : addresses) {
            const bool is_url = address.find("://") != std::string::npos;
            servers.add_server(is_url ? address : "redis://" + address);
        }
        servers.connect(); // Mutex::lock would wait for the servers; to avoid that, check now
        run(servers);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
