// The servers that a test program was given, and the keys on them, seen from outside the library. C++98.
#ifndef SERVERS_HPP
#define SERVERS_HPP

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "../c/check.h"

class Servers {
public:
    // `addresses` are host:port.
    Servers(int count, char **addresses) {
        for (int i = 0; i < count; i++) {
            const std::string address = addresses[i];
            const std::string::size_type colon = address.rfind(':');
            CHECK(colon != std::string::npos);
            hosts_.push_back(address.substr(0, colon));
            ports_.push_back(atoi(address.c_str() + colon + 1));
        }
        CHECK(count > 0);
    }

    size_t count() const { return hosts_.size(); }
    size_t quorum() const { return count() / 2 + 1; }
    const char *host(size_t i) const { return hosts_[i].c_str(); }
    int port(size_t i) const { return ports_[i]; }

    // The number of servers on which the key has this value. An empty value means that the key is
    // absent.
    size_t having(const std::string &key, const std::string &value) const {
        size_t found = 0;
        for (size_t i = 0; i < count(); i++) {
            if (ask(i, "GET " + key) == value) {
                found++;
            }
        }
        return found;
    }

    // A call returns when a majority has answered. Others may never be asked, such as a server to
    // which the connection is still being made.
    bool most_have(const std::string &key, const std::string &value) const {
        return having(key, value) >= quorum();
    }

    bool most_lack(const std::string &key) const { return most_have(key, ""); }

    // A release goes to all servers, and returns when a majority has answered. The others follow in
    // a moment.
    bool all_come_to_lack(const std::string &key) const {
        return all_come_to_have(key, "");
    }

    /* Servers that the call does not wait for may follow in a moment. */
    bool all_come_to_have(const std::string &key, const std::string &value) const {
        for (int tries = 0; tries < 1000; tries++) {
            if (having(key, value) == count()) {
                return true;
            }
            usleep(5000);
        }
        return false;
    }

    void remove(const std::string &key) const {
        for (size_t i = 0; i < count(); i++) {
            ask(i, "DEL " + key);
        }
    }

    // The reply of server `i` to one command line, without the framing; empty for nil.
    std::string ask(size_t i, const std::string &command) const {
        FILE *stream = dial(i);
        fprintf(stream, "%s\r\n", command.c_str());
        fflush(stream);
        char line[512];
        CHECK(fgets(line, sizeof line, stream) != NULL);
        CHECK(line[0] == '$' || line[0] == ':' || line[0] == '+');
        if (line[0] == '$') {
            if (atoi(line + 1) < 0) {
                fclose(stream);
                return "";
            }
            CHECK(fgets(line + 1, sizeof line - 1, stream) != NULL);
        }
        fclose(stream);
        return std::string(line + 1, strcspn(line + 1, "\r\n"));
    }

private:
    FILE *dial(size_t i) const {
        std::ostringstream port;
        port << ports_[i];
        addrinfo hints = addrinfo();
        hints.ai_socktype = SOCK_STREAM;
        addrinfo *found = NULL;
        CHECK(getaddrinfo(host(i), port.str().c_str(), &hints, &found) == 0);
        const int fd = socket(found->ai_family, found->ai_socktype, 0);
        CHECK(connect(fd, found->ai_addr, found->ai_addrlen) == 0);
        freeaddrinfo(found);
        FILE *stream = fdopen(fd, "r+");
        CHECK(stream != NULL);
        return stream;
    }

    std::vector<std::string> hosts_;
    std::vector<int> ports_;
};

// A port of 127.0.0.1 that refuses connections for as long as this object lives.
class ClosedPort {
public:
    ClosedPort() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address = sockaddr_in();
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        sockaddr *any = reinterpret_cast<sockaddr *>(&address);
        CHECK(bind(fd_, any, size) == 0 && getsockname(fd_, any, &size) == 0);
        port_ = ntohs(address.sin_port);
    }
    ~ClosedPort() { close(fd_); }
    int port() const { return port_; }

private:
    ClosedPort(const ClosedPort &);
    ClosedPort &operator=(const ClosedPort &);

    int fd_;
    int port_;
};

// A name that no other run of the tests on the same servers uses.
inline std::string fresh_name(const char *what) {
    static int used = 0;
    std::ostringstream name;
    name << "cpp:" << getpid() << ':' << used++ << ':' << what;
    return name.str();
}

#endif
