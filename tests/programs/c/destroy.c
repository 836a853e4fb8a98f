/* A callback's user_data is destroyed exactly once, when no call can use it any more, and while no
 * mutex is held. The program needs no server: the port is closed. */
#include <pthread.h>

#include "guest.h"

#define NOWHERE "redis://127.0.0.1:1"

/* The data of callbacks. It is freed when it is destroyed, so a tool detects a later use. */
struct Data {
    int *destroyed;
    /* The actions of the callback, and of the destroy function. */
    void (*calls)(void);
    void (*ends)(void);
    char *text;
};

static RedLock *manager;
static int lines, questions;

static struct Data *data_for(int *destroyed) {
    struct Data *data = calloc(1, sizeof *data);
    CHECK(data && (data->text = strdup("alive")));
    data->destroyed = destroyed;
    *destroyed = 0;
    return data;
}

static void destroy(void *user_data) {
    struct Data *data = user_data;
    CHECK(strcmp(data->text, "alive") == 0);
    ++*data->destroyed;
    if (data->ends) {
        data->ends();
    }
    free(data->text);
    free(data);
}

static void on_line(int32_t level, const char *line, void *user_data) {
    struct Data *data = user_data;
    CHECK(level > 0 && line[0]);
    lines++;
    if (data->calls) {
        data->calls();
    }
    CHECK(*data->destroyed == 0 && strcmp(data->text, "alive") == 0);
}

static bool answer(const char *server, char *password, size_t size, void *user_data) {
    struct Data *data = user_data;
    CHECK(server[0] && size > 2);
    questions++;
    if (data->calls) {
        data->calls();
    }
    CHECK(*data->destroyed == 0 && strcmp(data->text, "alive") == 0);
    strcpy(password, "p");
    return true;
}

static RedLock *new_manager(void) {
    RedLock *made = RedLock_New();
    CHECK(made && RedLock_AddServerUrl(made, NOWHERE, 0) == REDLOCK_OK);
    return made;
}

static RedLockStatus set_logger(RedLock *rl, struct Data *data) {
    return RedLock_SetLogger(rl, on_line, data, destroy);
}

static RedLockStatus set_callback(RedLock *rl, const char *user, struct Data *data) {
    return RedLock_SetPasswordCallback(rl, user, answer, data, destroy);
}

/* A failing connection first asks for a password, and then logs a line. */
static void connect_in_vain(RedLock *rl) {
    CHECK(RedLock_Connect(rl, 20) == REDLOCK_UNREACHABLE);
}

static void a_call_that_fails_destroys_at_once(void) {
    int destroyed;
    CHECK(set_logger(NULL, data_for(&destroyed)) == REDLOCK_INVALID_ARGUMENT && destroyed == 1);
    CHECK(set_callback(NULL, NULL, data_for(&destroyed)) == REDLOCK_INVALID_ARGUMENT);
    CHECK(destroyed == 1);
    RedLock *rl = new_manager();
    CHECK(set_callback(rl, "", data_for(&destroyed)) == REDLOCK_INVALID_ARGUMENT);
    CHECK(destroyed == 1);
    RedLock_Free(rl);
    CHECK(destroyed == 1);
}

static void without_a_callback_it_is_destroyed_at_once(void) {
    int destroyed;
    RedLock *rl = new_manager();
    struct Data *data = data_for(&destroyed);
    CHECK(RedLock_SetLogger(rl, NULL, data, destroy) == REDLOCK_OK && destroyed == 1);
    data = data_for(&destroyed);
    CHECK(RedLock_SetPasswordCallback(rl, NULL, NULL, data, destroy) == REDLOCK_OK);
    CHECK(destroyed == 1);
    /* A logger is not required. */
    CHECK(RedLock_SetLogger(rl, NULL, NULL, NULL) == REDLOCK_OK);
    RedLock_Free(rl);
}

static void what_is_replaced_is_destroyed(void) {
    int first, second, third;
    RedLock *rl = new_manager();
    CHECK(set_logger(rl, data_for(&first)) == REDLOCK_OK);
    connect_in_vain(rl);
    CHECK(lines > 0 && first == 0);
    CHECK(set_logger(rl, data_for(&second)) == REDLOCK_OK && first == 1 && second == 0);
    CHECK(RedLock_SetLogger(rl, NULL, NULL, NULL) == REDLOCK_OK && second == 1);

    CHECK(set_callback(rl, NULL, data_for(&first)) == REDLOCK_OK);
    questions = 0;
    connect_in_vain(rl);
    CHECK(questions > 0 && first == 0);
    CHECK(set_callback(rl, "u", data_for(&second)) == REDLOCK_OK && first == 1 && second == 0);
    CHECK(RedLock_SetPasswordCallback(rl, NULL, NULL, NULL, NULL) == REDLOCK_OK && second == 1);
    CHECK(set_callback(rl, NULL, data_for(&third)) == REDLOCK_OK);
    CHECK(RedLock_SetCredentials(rl, "u", "p") == REDLOCK_OK && third == 1);

    CHECK(set_logger(rl, data_for(&first)) == REDLOCK_OK);
    CHECK(set_callback(rl, NULL, data_for(&second)) == REDLOCK_OK);
    connect_in_vain(rl);
    CHECK(first == 0 && second == 0);
    RedLock_Free(rl);
    CHECK(first == 1 && second == 1);
}

static void replace_myself(void) {
    CHECK(RedLock_SetLogger(manager, NULL, NULL, NULL) == REDLOCK_OK);
    CHECK(RedLock_SetCredentials(manager, NULL, NULL) == REDLOCK_OK);
}

static void free_the_manager(void) { RedLock_Free(manager); }

/* Then it is destroyed when it has returned. */
static void a_callback_may_do_away_with_itself(void) {
    void (*const ways[])(void) = {replace_myself, free_the_manager};
    for (int i = 0; i < 4; i++) {
        int destroyed;
        manager = new_manager();
        struct Data *data = data_for(&destroyed);
        data->calls = ways[i % 2];
        CHECK((i < 2 ? set_logger(manager, data) : set_callback(manager, NULL, data)) == REDLOCK_OK);
        CHECK(RedLock_Connect(manager, 20) == REDLOCK_UNREACHABLE);
        CHECK(destroyed == 1);
        if (i % 2 == 0) {
            RedLock_Free(manager);
        }
    }
}

/* A destroy function may make any call, because no mutex is held. */
static void use_the_manager(void) {
    bool locked;
    CHECK(RedLock_SetRetry(manager, 1, 0) == REDLOCK_OK);
    CHECK(RedLock_SetLogger(manager, NULL, NULL, NULL) == REDLOCK_OK);
    CHECK(RedLock_SetCredentials(manager, NULL, NULL) == REDLOCK_OK);
    CHECK(RedLock_IsLocked(manager, "r", &locked) == REDLOCK_UNREACHABLE && !locked);
}

static void a_destroy_function_may_call_the_library(void) {
    for (int asks = 0; asks < 2; asks++) {
        int destroyed, other;
        manager = new_manager();
        CHECK(RedLock_SetTimeouts(manager, 20, 20) == REDLOCK_OK);
        struct Data *data = data_for(&destroyed);
        data->ends = use_the_manager;
        CHECK((asks ? set_callback(manager, NULL, data) : set_logger(manager, data)) == REDLOCK_OK);
        connect_in_vain(manager);
        data = data_for(&other);
        CHECK((asks ? set_callback(manager, NULL, data) : set_logger(manager, data)) == REDLOCK_OK);
        /* This call has also replaced the other callback. */
        CHECK(destroyed == 1 && other == 1);
        RedLock_Free(manager);
    }
}

static pthread_barrier_t is_in_it, may_go_on;

static void wait_in_it(void) {
    pthread_barrier_wait(&is_in_it);
    pthread_barrier_wait(&may_go_on);
}

static void *connects(void *destroyed) {
    CHECK(RedLock_Connect(manager, 20) == REDLOCK_UNREACHABLE);
    CHECK(*(int *)destroyed == 1);
    return NULL;
}

/* A call of another thread may be using the data when the manager is freed, or when another
 * callback is set. */
static void a_call_that_has_begun_may_use_it_to_its_end(void) {
    CHECK(pthread_barrier_init(&is_in_it, NULL, 2) == 0);
    CHECK(pthread_barrier_init(&may_go_on, NULL, 2) == 0);
    for (int i = 0; i < 4; i++) {
        bool asks = i % 2, frees = i < 2;
        int destroyed;
        manager = new_manager();
        struct Data *data = data_for(&destroyed);
        data->calls = wait_in_it;
        CHECK((asks ? set_callback(manager, NULL, data) : set_logger(manager, data)) == REDLOCK_OK);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, connects, &destroyed) == 0);
        pthread_barrier_wait(&is_in_it);
        if (frees) {
            RedLock_Free(manager);
        } else {
            replace_myself();
        }
        CHECK(destroyed == 0);
        pthread_barrier_wait(&may_go_on);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(destroyed == 1);
        if (!frees) {
            RedLock_Free(manager);
        }
    }
}

/* A child has only a copy of its parent's data, and must not destroy it. It destroys its own data. */
static void a_child_destroys_what_it_has_set_itself(void) {
    int logger, callback;
    RedLock *rl = new_manager();
    struct Data *const data[] = {data_for(&logger), data_for(&callback)};
    CHECK(set_logger(rl, data[0]) == REDLOCK_OK && set_callback(rl, NULL, data[1]) == REDLOCK_OK);
    connect_in_vain(rl);
    for (int replaces = 0; replaces < 2; replaces++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            no_longer_than(30);
            connect_in_vain(rl);
            if (replaces) {
                int own;
                CHECK(set_logger(rl, data_for(&own)) == REDLOCK_OK);
                CHECK(RedLock_SetCredentials(rl, NULL, NULL) == REDLOCK_OK);
                connect_in_vain(rl);
                RedLock_Free(rl);
                CHECK(own == 1);
            } else {
                RedLock_Free(rl);
            }
            CHECK(logger == 0 && callback == 0);
            _exit(0);
        }
        reap(child);
    }
    CHECK(logger == 0 && callback == 0);
    RedLock_Free(rl);
    CHECK(logger == 1 && callback == 1);
}

int main(void) {
    no_longer_than(60);
    a_call_that_fails_destroys_at_once();
    without_a_callback_it_is_destroyed_at_once();
    what_is_replaced_is_destroyed();
    a_callback_may_do_away_with_itself();
    a_destroy_function_may_call_the_library();
    a_call_that_has_begun_may_use_it_to_its_end();
    a_child_destroys_what_it_has_set_itself();
    return 0;
}
