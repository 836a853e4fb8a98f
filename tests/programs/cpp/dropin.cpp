// The guarantees of redlock-cpp/redlock.h, against the servers given as host:port. C++98 and later.
#include "redlock-cpp/redlock.h"

#include <sys/wait.h>

#include "servers.hpp"

namespace {

const int ttl = 20000;

bool is_empty(const char *text) { return text != NULL && text[0] == '\0'; }

bool is_token(const char *text) {
    return strlen(text) == 40 && strspn(text, "0123456789ABCDEF") == 40;
}

void add_all(CRedLock &dlm, const Servers &servers) {
    for (size_t i = 0; i < servers.count(); i++) {
        CHECK(dlm.AddServerUrl(servers.host(i), servers.port(i)));
    }
    dlm.SetRetry(1, 0);
}

class Dlm : public CRedLock {
public:
    explicit Dlm(const Servers &servers) { add_all(*this, servers); }
};

void servers_are_added_once_and_before_the_first_lock(const Servers &servers) {
    Dlm dlm(servers);
    CHECK(!dlm.AddServerUrl(servers.host(0), servers.port(0)));
    CHECK(!dlm.AddServerUrl(NULL, 5005));
    CHECK(!dlm.AddServerUrl("", 5005));
    CHECK(!dlm.AddServerUrl("127.0.0.1", 0));
    CHECK(!dlm.AddServerUrl("127.0.0.1", -1));
    CHECK(!dlm.AddServerUrl("127.0.0.1", 65536));
    CLock lock;
    CHECK(dlm.Lock(fresh_name("added").c_str(), ttl, lock) && dlm.Unlock(lock));
    CHECK(!dlm.AddServerUrl("127.0.0.1", 5005));
}

void members_are_never_null_after_a_call(const Servers &servers) {
    Dlm dlm(servers);
    CRedLock none;
    CLock lock;
    CHECK(lock.m_validityTime == 0 && lock.m_resource == NULL && lock.m_val == NULL);
    CHECK(dlm.Unlock(lock));

    CHECK(!dlm.Lock(NULL, ttl, lock));
    CHECK(is_empty(lock.m_resource) && is_empty(lock.m_val) && lock.m_validityTime == 0);
    CHECK(!dlm.Lock("", ttl, lock) && is_empty(lock.m_resource));
    CHECK(!dlm.Lock("x", 0, lock) && is_empty(lock.m_val));
    CHECK(!dlm.Lock("x", -1, lock) && string(lock.m_resource) == "x");

    CLock other;
    CHECK(!dlm.ContinueLock(NULL, ttl, other));
    CHECK(is_empty(other.m_resource) && is_empty(other.m_val) && other.m_validityTime == 0);
    CHECK(!none.ContinueLock("y", ttl, other) && string(other.m_resource) == "y");
    CHECK(!none.Lock("z", ttl, other) && string(other.m_resource) == "z");
    CHECK(dlm.Unlock(lock) && dlm.Unlock(other));
}

void a_lock_shows_what_stands_on_the_servers(const Servers &servers) {
    Dlm dlm(servers);
    Dlm rival(servers);
    const string name = fresh_name("lock");
    CLock lock;
    CHECK(dlm.Lock(name.c_str(), ttl, lock));
    CHECK(lock.m_resource == name && is_token(lock.m_val));
    CHECK(lock.m_validityTime > ttl / 2 && lock.m_validityTime < ttl);
    CHECK(servers.most_have(name, lock.m_val));

    CLock refused;
    CHECK(!rival.Lock(name.c_str(), ttl, refused));
    CHECK(refused.m_resource == name && is_empty(refused.m_val) && refused.m_validityTime == 0);
    CHECK(!rival.ContinueLock(name.c_str(), ttl, refused) && is_empty(refused.m_val));
    CHECK(rival.Unlock(refused));
    CHECK(servers.most_have(name, lock.m_val));

    CHECK(dlm.Unlock(lock) && servers.all_come_to_lack(name));
    CHECK(dlm.Unlock(lock));
    CHECK(lock.m_resource == name && is_token(lock.m_val));
    CHECK(rival.Lock(name.c_str(), ttl, refused) && rival.Unlock(refused));
}

void a_lock_in_use_is_left_to_its_end_when_its_clock_is_used_again(const Servers &servers) {
    Dlm dlm(servers);
    const string first = fresh_name("first");
    const string second = fresh_name("second");
    CLock lock;
    CHECK(dlm.Lock(first.c_str(), ttl, lock));
    const string token = lock.m_val;
    CHECK(dlm.Lock(second.c_str(), ttl, lock));
    CHECK(lock.m_resource == second && lock.m_val != token);
    CHECK(servers.most_have(first, token));
    CHECK(servers.most_have(second, lock.m_val));

    // The strings of the CLock itself may be passed in.
    CHECK(dlm.Unlock(lock) && dlm.Lock(lock.m_resource, ttl, lock) && lock.m_resource == second);
    CHECK(dlm.ContinueLock(lock.m_resource, ttl, lock) && lock.m_resource == second);
    CHECK(dlm.Unlock(lock));
    servers.remove(first);
}

void a_fresh_clock_each_round_renews(const Servers &servers) {
    Dlm dlm(servers);
    Dlm rival(servers);
    const string name = fresh_name("continue");
    string token;
    for (int round = 1; round <= 5; round++) {
        CLock lock;
        CHECK(dlm.ContinueLock(name.c_str(), round * ttl, lock));
        CHECK(round == 1 || lock.m_val == token);
        CHECK(lock.m_validityTime > (round - 1) * ttl && lock.m_validityTime < round * ttl);
        token = lock.m_val;
        CHECK(is_token(lock.m_val) && servers.most_have(name, token));
        CLock refused;
        CHECK(!rival.ContinueLock(name.c_str(), ttl, refused));
        if (round == 5) {
            CHECK(dlm.Unlock(lock));
        }
    }
    CHECK(servers.all_come_to_lack(name));
    CLock again;
    CHECK(dlm.ContinueLock(name.c_str(), ttl, again) && again.m_val != token);
    CHECK(dlm.Unlock(again));
}

void two_resources_in_turn_are_both_kept(const Servers &servers) {
    Dlm dlm(servers);
    const string names[2] = {fresh_name("one"), fresh_name("other")};
    string tokens[2];
    CLock lock;
    for (int round = 0; round < 6; round++) {
        const string &name = names[round % 2];
        string &token = tokens[round % 2];
        CHECK(dlm.ContinueLock(name.c_str(), ttl, lock));
        CHECK(lock.m_resource == name && (round < 2 || lock.m_val == token));
        token = lock.m_val;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(servers.most_have(names[i], tokens[i]));
        CHECK(dlm.ContinueLock(names[i].c_str(), ttl, lock) && dlm.Unlock(lock));
        CHECK(servers.all_come_to_lack(names[i]));
    }
}

void what_lock_took_can_be_continued(const Servers &servers) {
    Dlm dlm(servers);
    const string name = fresh_name("taken");
    CLock lock;
    CHECK(dlm.Lock(name.c_str(), ttl, lock));
    const string token = lock.m_val;
    CHECK(dlm.ContinueLock(name.c_str(), 3 * ttl, lock));
    CHECK(lock.m_val == token && lock.m_validityTime > ttl);
    CHECK(dlm.Unlock(lock));
}

void a_failed_continue_leaves_the_old_lock_alone(const Servers &servers) {
    Dlm dlm(servers);
    const string name = fresh_name("failed");
    CLock lock;
    CHECK(dlm.ContinueLock(name.c_str(), ttl, lock));
    const string token = lock.m_val;
    CHECK(!dlm.ContinueLock(name.c_str(), 0, lock));
    CHECK(lock.m_val == token && lock.m_validityTime > ttl / 2 && lock.m_validityTime < ttl);
    CHECK(servers.most_have(name, token));
    CHECK(dlm.ContinueLock(name.c_str(), ttl, lock) && lock.m_val == token);
    CHECK(dlm.Unlock(lock));
}

void a_gap_shows_once(const Servers &servers) {
    Dlm dlm(servers);
    const string name = fresh_name("gap");
    CLock first;
    CHECK(dlm.ContinueLock(name.c_str(), ttl, first));
    CHECK(servers.most_have(name, first.m_val));
    servers.remove(name);
    CLock second;
    CHECK(!dlm.ContinueLock(name.c_str(), ttl, second));
    CHECK(is_empty(second.m_val) && second.m_validityTime == 0);
    CHECK(dlm.ContinueLock(name.c_str(), ttl, second));
    CHECK(string(second.m_val) != first.m_val && dlm.Unlock(second));
}

void any_object_may_unlock(const Servers &servers) {
    const string name = fresh_name("elsewhere");
    CLock lock;
    {
        Dlm dlm(servers);
        CHECK(dlm.Lock(name.c_str(), ttl, lock));
    }
    CHECK(servers.most_have(name, lock.m_val));
    Dlm other(servers);
    CHECK(other.Unlock(lock) && servers.most_lack(name));
    // It may still be connecting to the rest. A further call completes that.
    while (servers.having(name, "") < servers.count()) {
        CHECK(other.Unlock(lock));
        usleep(5000);
    }
    CHECK(other.Unlock(lock));
}

void the_quorum_counts_servers_that_are_down(const Servers &servers) {
    ClosedPort closed[7];
    CHECK(servers.count() <= 7);
    CRedLock dlm;
    add_all(dlm, servers);
    for (size_t i = 0; i < servers.count(); i++) {
        CHECK(dlm.AddServerUrl("127.0.0.1", closed[i].port()));
    }
    const string name = fresh_name("quorum");
    CLock lock;
    CHECK(!dlm.Lock(name.c_str(), ttl, lock));
    CHECK(is_empty(lock.m_val) && servers.all_come_to_lack(name));

    CRedLock nobody;
    CHECK(nobody.AddServerUrl("127.0.0.1", closed[0].port()));
    Dlm up(servers);
    CHECK(up.Lock(name.c_str(), ttl, lock));
    CHECK(!nobody.Unlock(lock));
    CHECK(up.Unlock(lock) && servers.all_come_to_lack(name));
}

void settings_of_any_value_are_taken(const Servers &servers) {
    Dlm dlm(servers);
    CHECK(dlm.Initialize());
    dlm.SetRetry(0, -5);
    dlm.SetRetry(-1, 0);
    const string name = fresh_name("settings");
    CLock lock;
    CLock refused;
    CHECK(dlm.Lock(name.c_str(), ttl, lock));
    CHECK(!dlm.Lock(name.c_str(), ttl, refused));
    CHECK(dlm.Initialize() && dlm.Unlock(lock));
    CHECK(dlm.Lock(name.c_str(), ttl, refused) && dlm.Unlock(refused));
}

#if __cplusplus >= 201103L
void a_clock_moves(const Servers &servers) {
    Dlm dlm(servers);
    const string name = fresh_name("moved");
    CLock lock;
    CHECK(dlm.Lock(name.c_str(), ttl, lock));
    const string token = lock.m_val;

    CLock moved(std::move(lock));
    CHECK(lock.m_resource == NULL && lock.m_val == NULL && lock.m_validityTime == 0);
    CHECK(moved.m_val == token && moved.m_resource == name && moved.m_validityTime > 0);
    CHECK(dlm.Unlock(lock) && servers.most_have(name, token));

    std::vector<CLock> locks(1);
    locks[0] = std::move(moved);
    CHECK(moved.m_val == NULL && locks[0].m_val == token);
    CLock &itself = locks[0];
    locks[0] = std::move(itself);
    CHECK(locks[0].m_val == token && dlm.Unlock(locks[0]));
    CHECK(servers.all_come_to_lack(name));
}
#else
void a_clock_moves(const Servers &) {}
#endif

// The differences from the old library that the header lists and that no test above shows.

void two_clocks_of_one_resource_hold_one_lock(const Servers &servers) {
    Dlm dlm(servers);
    for (int released = 0; released < 2; released++) {
        const string name = fresh_name("order");
        CLock locks[2];
        CHECK(dlm.ContinueLock(name.c_str(), ttl, locks[0]));
        CHECK(dlm.ContinueLock(name.c_str(), ttl, locks[1]));
        CHECK(string(locks[0].m_val) == locks[1].m_val);
        // Either of them releases the lock that both hold.
        CHECK(dlm.Unlock(locks[released]) && servers.all_come_to_lack(name));
        CHECK(dlm.Unlock(locks[1 - released]));
    }
}

void a_shorter_ttl_shortens_nothing(const Servers &servers) {
    Dlm dlm(servers);
    const string name = fresh_name("shorter");
    CLock lock;
    CHECK(dlm.ContinueLock(name.c_str(), 10 * ttl, lock));
    CHECK(dlm.ContinueLock(name.c_str(), ttl, lock));
    CHECK(lock.m_validityTime > 5 * ttl);
    size_t longer = 0;
    for (size_t i = 0; i < servers.count(); i++) {
        longer += atoi(servers.ask(i, "PTTL " + name).c_str()) > 5 * ttl;
    }
    CHECK(longer >= servers.quorum() && dlm.Unlock(lock));
}

void nothing_is_locked_without_a_name_or_servers(const Servers &servers) {
    Dlm dlm(servers);
    CRedLock none;
    CLock lock;
    CHECK(!dlm.Lock("", ttl, lock) && !dlm.ContinueLock("", ttl, lock));
    CHECK(!none.Lock("x", ttl, lock) && !none.ContinueLock("x", ttl, lock));
    CHECK(is_empty(lock.m_val) && lock.m_validityTime == 0 && none.Unlock(lock));
    CHECK(none.Initialize() && !none.Lock("x", ttl, lock));
}

void a_quorum_stays_when_it_is_initialized_again(const Servers &servers) {
    Dlm dlm(servers);
    Dlm rival(servers);
    const string name = fresh_name("initialize");
    CLock lock;
    CLock refused;
    CHECK(rival.Lock(name.c_str(), ttl, lock));
    CHECK(dlm.Initialize());
    dlm.SetRetry(1, 0);
    CHECK(!dlm.Lock(name.c_str(), ttl, refused) && rival.Unlock(lock));
}

void the_shortest_ttl_is_four(const Servers &servers) {
    Dlm dlm(servers);
    CLock lock;
    CHECK(!dlm.Lock(fresh_name("three").c_str(), 3, lock) && lock.m_validityTime == 0);
    CHECK(!dlm.ContinueLock(fresh_name("three").c_str(), 3, lock));
}

void what_is_written_into_the_members_changes_no_lock(const Servers &servers) {
    Dlm dlm(servers);
    const string name = fresh_name("by-hand");
    CLock lock;
    CHECK(dlm.Lock(name.c_str(), ttl, lock));
    const string token = lock.m_val;
    lock.m_val[0] = 'X';
    lock.m_resource[0] = 'X';
    CHECK(dlm.Unlock(lock) && servers.all_come_to_lack(name));

    // Strings that the caller puts in their place still belong to the caller.
    char other[] = "0123456789ABCDEF0123456789ABCDEF01234567";
    CHECK(dlm.Lock(name.c_str(), ttl, lock));
    lock.m_val = other;
    lock.m_resource = other;
    CHECK(dlm.Unlock(lock) && servers.all_come_to_lack(name));
    CHECK(dlm.Lock(name.c_str(), ttl, lock) && lock.m_val != other && lock.m_resource == name);
    lock.m_val = NULL;
    lock.m_resource = NULL;
    CHECK(dlm.Unlock(lock) && servers.all_come_to_lack(name));

    // Knowing a token is not enough to have the lock.
    CHECK(dlm.Lock(name.c_str(), ttl, lock));
    string found = lock.m_val;
    string key = name;
    CLock by_hand;
    by_hand.m_resource = &key[0];
    by_hand.m_val = &found[0];
    CHECK(dlm.Unlock(by_hand) && servers.most_have(name, found));
    CHECK(dlm.Unlock(lock) && servers.all_come_to_lack(name));
}

// In the child.
void use_locks_of_the_parent(CRedLock &dlm, CLock &held, CLock &continued, const string &token) {
    CHECK(held.m_val == token && !dlm.Unlock(held));
    const string name = continued.m_resource;
    CHECK(!dlm.ContinueLock(name.c_str(), ttl, continued));
    CHECK(is_empty(continued.m_val) && continued.m_resource == name);
    CLock fresh;
    CHECK(!dlm.ContinueLock(name.c_str(), ttl, fresh));
    CHECK(!dlm.Lock(held.m_resource, ttl, held));
    CHECK(dlm.Lock(fresh_name("child").c_str(), ttl, held) && dlm.Unlock(held));
}

// Both processes return from here, so the child runs the destructors of the objects that it
// inherited.
void a_child_leaves_the_locks_of_its_parent_alone(const Servers &servers) {
    Dlm dlm(servers);
    const string name = fresh_name("fork");
    const string other = fresh_name("fork");
    CLock held;
    CLock continued;
    CHECK(dlm.Lock(name.c_str(), ttl, held));
    CHECK(dlm.ContinueLock(other.c_str(), ttl, continued));
    const string token = held.m_val;

    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        use_locks_of_the_parent(dlm, held, continued, token);
        return;
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(servers.most_have(name, token));
    CHECK(servers.most_have(other, continued.m_val));
    CHECK(dlm.ContinueLock(other.c_str(), ttl, continued));
    CHECK(dlm.Unlock(held) && dlm.Unlock(continued));
    CHECK(servers.all_come_to_lack(name) && servers.all_come_to_lack(other));
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    servers_are_added_once_and_before_the_first_lock(servers);
    members_are_never_null_after_a_call(servers);
    a_lock_shows_what_stands_on_the_servers(servers);
    a_lock_in_use_is_left_to_its_end_when_its_clock_is_used_again(servers);
    a_fresh_clock_each_round_renews(servers);
    two_resources_in_turn_are_both_kept(servers);
    what_lock_took_can_be_continued(servers);
    a_failed_continue_leaves_the_old_lock_alone(servers);
    a_gap_shows_once(servers);
    any_object_may_unlock(servers);
    the_quorum_counts_servers_that_are_down(servers);
    settings_of_any_value_are_taken(servers);
    two_clocks_of_one_resource_hold_one_lock(servers);
    a_shorter_ttl_shortens_nothing(servers);
    nothing_is_locked_without_a_name_or_servers(servers);
    a_quorum_stays_when_it_is_initialized_again(servers);
    the_shortest_ttl_is_four(servers);
    what_is_written_into_the_members_changes_no_lock(servers);
    a_clock_moves(servers);
    a_child_leaves_the_locks_of_its_parent_alone(servers);
    return 0;
}
