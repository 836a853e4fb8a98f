/*
 * A Redis Cluster of the demo's own: what `redis-cli --cluster create` and `redis-cli --cluster reshard` do, in the
 * commands that they send.
 */
#define _DEFAULT_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum {
    SLOTS = 16384,
    FORM_MS = 60000,   /* a cluster that takes longer does not form any more */
    WORDS = 65536,     /* a node takes no longer line */
    ID = 40,
    OLDEST = 602,      /* of servers: 6.2 */
};

/* --- One command, and its answer --- */

/* Appends one answer to a text. Each element of an array has a line break behind it. */
static bool read_answer(FILE *from, char *text, size_t size) {
    char line[1024];
    size_t used = strlen(text);
    if (fgets(line, sizeof line, from) == NULL) {
        return false;
    }
    line[strcspn(line, "\r\n")] = '\0';
    long number = strtol(line + 1, NULL, 10);
    if (line[0] == '*') {
        bool good = true;
        for (long i = 0; good && i < number; i++) {
            good = read_answer(from, text, size);
            used = strlen(text);
            snprintf(text + used, size - used, "\n");
        }
        return good;
    }
    if (line[0] != '$') {
        snprintf(text + used, size - used, "%s", line[0] == '-' ? line : line + 1);
        return true;
    }
    size_t length = number > 0 ? (size_t)number : 0;
    bool fits = used + length + 1 <= size && fread(text + used, 1, length, from) == length;
    text[used + (fits ? length : 0)] = '\0';
    return fits && (number < 0 || fgets(line, sizeof line, from) != NULL);
}

/* Sends a command to a node; no word of it has a space. The answer stays until the next question. */
static const char *ask_with(const struct server *node, const char *format, va_list arguments) {
    static char command[WORDS];
    static char text[WORDS];
    int length = vsnprintf(command, sizeof command - 2, format, arguments);
    memcpy(command + length, "\r\n", 3);
    FILE *answer = server_ask(node, command);
    text[0] = '\0';
    if (answer == NULL || !read_answer(answer, text, sizeof text)) {
        snprintf(text, sizeof text, "-it does not answer");
    }
    if (answer != NULL) {
        fclose(answer);
    }
    return text;
}

static bool is_error(const char *answer) {
    return answer[0] == '-';
}

__attribute__((format(printf, 2, 3)))
static const char *ask(const struct server *node, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *answer = ask_with(node, format, arguments);
    va_end(arguments);
    return answer;
}

/* The same for a command that must not fail. */
__attribute__((format(printf, 2, 3)))
static bool tell(const struct server *node, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *answer = ask_with(node, format, arguments);
    va_end(arguments);
    if (is_error(answer) && caught_signal() == 0) {
        complain("node :%d refuses `%.20s...`: %s", node->port, format, answer + 1);
    }
    return !is_error(answer);
}

/* --- Forming a cluster --- */

/* Of servers that cannot be nodes, some do not even start: then their log says why. */
static bool can_be_node(const struct server *server) {
    int major = 0;
    int minor = 0;
    const char *version = strstr(ask(server, "INFO server"), "redis_version:");
    if (version == NULL || sscanf(version, "redis_version:%d.%d", &major, &minor) != 2) {
        complain("the server does not tell its version");
        return false;
    }
    if (major * 100 + minor < OLDEST) {
        complain("the server is too old for this demo: it is version %d.%d, and 6.2 is needed", major, minor);
        return false;
    }
    const char *answer = ask(server, "CLUSTER INFO");
    if (is_error(answer)) {
        complain("the server cannot be a node of a cluster: %s", answer + 1);
        return false;
    }
    return true;
}

static int first_slot(int master) {
    return SLOTS * master / MASTERS;
}

static bool add_slots(const struct server *node, int master) {
    static char list[WORDS];
    int length = 0;
    for (int slot = first_slot(master); slot < first_slot(master + 1); slot++) {
        length += snprintf(list + length, sizeof list - (size_t)length, " %d", slot);
    }
    return tell(node, "CLUSTER ADDSLOTS%s", list);
}

static bool follow(const struct server *replica, const struct server *master) {
    char id[ID + 1];
    snprintf(id, sizeof id, "%s", ask(master, "CLUSTER MYID"));
    return !is_error(ask(replica, "CLUSTER REPLICATE %s", id)); /* it may not know the master yet */
}

static int count(const char *text, const char *word) {
    int found = 0;
    for (text = strstr(text, word); text != NULL; text = strstr(text + 1, word)) {
        found++;
    }
    return found;
}

/* Whether a node knows the whole cluster, and the replicas have caught up. */
static bool is_ready(const struct server nodes[NODES], int i) {
    const char *state = ask(&nodes[i], "CLUSTER INFO");
    if (strstr(state, "cluster_state:ok") == NULL || strstr(state, "cluster_slots_ok:16384") == NULL) {
        return false;
    }
    const char *map = ask(&nodes[i], "CLUSTER NODES");
    if (count(map, "\n") != NODES || count(map, "slave") != NODES - MASTERS || count(map, "handshake") != 0) {
        return false;
    }
    return i < MASTERS || strstr(ask(&nodes[i], "INFO replication"), "master_link_status:up") != NULL;
}

static bool follows(const struct server nodes[NODES], int i) {
    return i < MASTERS || follow(&nodes[i], &nodes[i - MASTERS]);
}

static bool wait_for_all(struct server nodes[NODES], bool (*is_so)(const struct server nodes[NODES], int i)) {
    int64_t end = clock_ms() + FORM_MS;
    for (int i = 0; i < NODES;) {
        if (is_so(nodes, i)) {
            i++;
        } else if (clock_ms() > end) {
            complain("the nodes do not form a cluster");
            return false;
        } else if (!sleep_ms(20) || !servers_all_alive(nodes, NODES)) {
            return false;
        }
    }
    return true;
}

bool nodes_open(struct server nodes[NODES]) {
    for (int i = 0; i < NODES; i++) {
        nodes[i].is_node = true;
    }
    if (!servers_open(nodes, NODES) || !can_be_node(&nodes[0])) {
        return false;
    }
    for (int i = 0; i < NODES; i++) {
        if (!tell(&nodes[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1) || (i < MASTERS && !add_slots(&nodes[i], i))) {
            return false;
        }
    }
    for (int i = 1; i < NODES; i++) {
        if (!tell(&nodes[0], "CLUSTER MEET 127.0.0.1 %d", nodes[i].port)) {
            return false;
        }
    }
    return wait_for_all(nodes, follows) && wait_for_all(nodes, is_ready);
}

bool nodes_place(struct server nodes[NODES], struct tag *tag) {
    const char *answer = ask(&nodes[0], "CLUSTER KEYSLOT {%s}", tag->name);
    if (is_error(answer)) {
        complain("there is no slot of tag %s: %s", tag->name, answer + 1);
        return false;
    }
    tag->slot = (int)strtol(answer, NULL, 10);
    int master = 0;
    while (tag->slot >= first_slot(master + 1)) {
        master++;
    }
    tag->master = &nodes[master];
    return true;
}

/* --- Moving a slot --- */

/* From now on, the node that has the slot takes no new keys. */
static bool move_keys(const struct server *from, const struct server *to, int slot) {
    char key[256];
    for (;;) {
        snprintf(key, sizeof key, "%s", ask(from, "CLUSTER GETKEYSINSLOT %d 1", slot));
        key[strcspn(key, "\n")] = '\0';
        if (key[0] == '\0' || is_error(key)) {
            return key[0] == '\0';
        }
        if (!tell(from, "MIGRATE 127.0.0.1 %d %s 0 5000", to->port, key)) {
            return false;
        }
    }
}

bool nodes_move_slot(struct server nodes[NODES], const struct tag *tag, struct server *to) {
    const struct server *from = tag->master;
    char old[ID + 1];
    char new[ID + 1];
    snprintf(old, sizeof old, "%s", ask(from, "CLUSTER MYID"));
    snprintf(new, sizeof new, "%s", ask(to, "CLUSTER MYID"));
    bool good = tell(to, "CLUSTER SETSLOT %d IMPORTING %s", tag->slot, old)
        && tell(from, "CLUSTER SETSLOT %d MIGRATING %s", tag->slot, new)
        && move_keys(from, to, tag->slot)
        && tell(to, "CLUSTER SETSLOT %d NODE %s", tag->slot, new)
        && tell(from, "CLUSTER SETSLOT %d NODE %s", tag->slot, new);
    /* The others would hear of it in a while. Replicas refuse to be told. */
    for (int i = 0; good && i < NODES; i++) {
        if (nodes[i].pid != 0) {
            ask(&nodes[i], "CLUSTER SETSLOT %d NODE %s", tag->slot, new);
        }
    }
    return good;
}
