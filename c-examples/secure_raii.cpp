/*
 * Takes a lock on servers that require encryption and a log-in: over TLS, and with a password that a callback
 * provides when it is needed.
 *
 *     secure_raii ca.pem [rediss://host:port ...]
 *
 * If REDIS_PASSWORD is set in the environment, it is the password; REDIS_USER may name an ACL user.
 */
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

#include "redlock.hpp"

namespace {

std::string variable(const char *name) {
    const char *value = std::getenv(name);
    return value == nullptr ? std::string() : value;
}

void configure(redlock::Manager &servers, const std::vector<std::string> &arguments) {
    std::vector<std::string> urls{"rediss://127.0.0.1:6479", "rediss://127.0.0.1:6480",
                                  "rediss://127.0.0.1:6481"};
    if (!arguments.empty()) {
        servers.set_tls_ca(arguments[0]); /* otherwise the system's authorities are trusted */
    }
    if (arguments.size() > 1) {
        urls.assign(arguments.begin() + 1, arguments.end());
    }
    for (const std::string &url : urls) {
        servers.add_server(url);
    }
    if (!variable("REDIS_PASSWORD").empty()) {
        /* A program that changes its passwords now and then would read a file here. */
        servers.set_password_callback(variable("REDIS_USER"), [](const std::string &server) {
            std::cout << server << " is told the password\n";
            return variable("REDIS_PASSWORD");
        });
    }
}

} // namespace

int main(int argc, char **argv) {
    try {
        redlock::Manager servers;
        configure(servers, std::vector<std::string>(argv + 1, argv + argc));
        servers.connect();
        redlock::Mutex mutex(servers, "secure:report", std::chrono::seconds(10));
        std::lock_guard<redlock::Mutex> guard(mutex);
        std::cout << "locked for " << mutex.remaining().count() << " ms, in secret\n";
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
