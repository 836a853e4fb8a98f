/* The C library for JavaScript. Programs use index.js; this file is its C part.
 *
 * Nothing here waits, except for three calls that have no other form (connect, isLocked, inspect): those run on the
 * threads that Node.js has for such work. All other calls end on the thread of the library. No JavaScript may run
 * there, so the results go into the queue of a thread-safe function, and from there to one function in lib/events.js.
 *
 * The library identifies calls and kept locks by numbers that lib/events.js gives them, and not by pointers, because the
 * object of an event may be gone when the event comes.
 *
 * There are no variables that environments (the main thread, workers) would share, and none per environment, because
 * the JavaScript may be loaded more than once in one environment, as test runners do.
 */
#define NAPI_VERSION 8

#include <node_api.h>
#include <pthread.h>
#include <redlock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if REDLOCK_VERSION_MAJOR != 0 || REDLOCK_VERSION_MINOR != 3
#error "this file is for redlock 0.3, and the redlock.h that was found is of another version"
#endif

#if UINTPTR_MAX < UINT32_MAX
#error "the numbers of calls need 32 bits"
#endif

/* The interface version that this file needs. Below 1.0 the interface may change with the second number. */
#define INTERFACE "0.3."

enum {
    ARGUMENTS_MAX = 10,
    /* Enough for every message of a manager. */
    MESSAGE_SIZE = 4096,
    /* In addition to REDLOCK_EVENT_DONE and REDLOCK_EVENT_LOST. */
    EVENT_LOG = -1
};

/* The path from threads of the library to JavaScript. Its JavaScript object and all event sources share it, and the
 * last of them frees it. */
struct bridge {
    atomic_int users;
    pthread_mutex_t mutex;
    /* NULL when the environment has ended. */
    napi_threadsafe_function function;
};

/* One event or log line. */
struct news {
    int32_t kind;
    int32_t status;
    uint32_t id;
    int64_t remaining_ms;
    char text[];
};

/* The source of log lines. */
struct log_source {
    struct bridge *bridge;
    uint32_t id;
};

/* The manager, shared by its JavaScript object, its leases, and calls that wait on other threads. */
struct manager {
    atomic_int users;
    struct bridge *bridge;
    /* NULL when the manager was closed. */
    RedLock *rl;
    /* The number of calls that wait on other threads. Only the JavaScript thread uses it. */
    int waiting;
};

struct lease {
    struct manager *manager;
    RedLockLease *lease;
};

/* A call that waits on a thread of Node.js. */
struct job {
    napi_async_work work;
    napi_deferred deferred;
    struct manager *manager;
    char *resource; /* NULL: the job is a connect */
    int64_t timeout_ms;
    RedLockStatus status;
    bool is_locked;
    bool inspects; /* fills info, which also holds the permits */
    RedLockInfo info;
    char message[MESSAGE_SIZE];
};

/* The arguments of a call from JavaScript. */
struct call {
    napi_env env;
    napi_value arguments[ARGUMENTS_MAX];
    size_t count;
};

static const napi_type_tag bridge_tag = {0x2c5b90e7d1a64f38ULL, 0x8e6f0b7c93d24a59ULL};
static const napi_type_tag manager_tag = {0x6b36cd5d2f0a4d0eULL, 0x9d3ce1bb0f8d3a11ULL};
static const napi_type_tag lease_tag = {0x1f9d3a7ac45b4be2ULL, 0xb7ab04d1e6c98f52ULL};

/* Aborts without memory, as the library does, because a promise would otherwise never be settled. */
static void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) {
        fputs("redlock: no memory\n", stderr);
        abort();
    }
    return memory;
}

static void fail(napi_env env, const char *words) {
    bool is_pending = false;
    if (napi_is_exception_pending(env, &is_pending) == napi_ok && !is_pending) {
        napi_throw_error(env, NULL, words);
    }
}

/* --- The bridge --- */

static void leave_bridge(struct bridge *bridge) {
    if (atomic_fetch_sub(&bridge->users, 1) == 1) {
        pthread_mutex_destroy(&bridge->mutex);
        free(bridge);
    }
}

static struct bridge *enter_bridge(struct bridge *bridge) {
    atomic_fetch_add(&bridge->users, 1);
    return bridge;
}

/* Any thread may call this. The mutex keeps the thread-safe function from going away meanwhile. */
static void tell(struct bridge *bridge, struct news *news) {
    bool is_told = false;
    pthread_mutex_lock(&bridge->mutex);
    if (bridge->function != NULL) {
        napi_status status = napi_call_threadsafe_function(bridge->function, news, napi_tsfn_nonblocking);
        is_told = status == napi_ok;
    }
    pthread_mutex_unlock(&bridge->mutex);
    if (!is_told) {
        free(news);
    }
}

/* A RedLockEventCallback. */
static void tell_event(const RedLockEvent *event, void *user_data) {
    struct news *news = allocate(sizeof *news + 1);
    news->kind = event->kind;
    news->status = event->status;
    news->id = (uint32_t)(uintptr_t)event->user_data;
    news->remaining_ms = event->remaining_ms;
    tell(user_data, news);
}

/* A RedLockLogger. */
static void tell_line(int32_t level, const char *message, void *user_data) {
    const struct log_source *source = user_data;
    size_t size = strlen(message) + 1;
    struct news *news = allocate(sizeof *news + size);
    news->kind = EVENT_LOG;
    news->status = level;
    news->id = source->id;
    memcpy(news->text, message, size);
    tell(source->bridge, news);
}

static void forget_bridge(void *user_data) {
    leave_bridge(user_data);
}

static void forget_log_source(void *user_data) {
    struct log_source *source = user_data;
    leave_bridge(source->bridge);
    free(source);
}

/* Runs on the JavaScript thread, for each event and log line. */
static void hand_over(napi_env env, napi_value function, void *context, void *data) {
    struct news *news = data;
    (void)context;
    if (env != NULL && function != NULL) {
        napi_value receiver, arguments[5];
        if (napi_get_undefined(env, &receiver) == napi_ok &&
            napi_create_int32(env, news->kind, &arguments[0]) == napi_ok &&
            napi_create_int32(env, news->status, &arguments[1]) == napi_ok &&
            napi_create_uint32(env, news->id, &arguments[2]) == napi_ok &&
            napi_create_int64(env, news->remaining_ms, &arguments[3]) == napi_ok &&
            napi_create_string_utf8(env, news->text, NAPI_AUTO_LENGTH, &arguments[4]) == napi_ok &&
            napi_call_function(env, receiver, function, 5, arguments, NULL) == napi_pending_exception) {
            napi_value exception;
            if (napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
                napi_fatal_exception(env, exception);
            }
        }
    }
    free(news);
}

/* The environment has ended: from now on events and log lines are dropped. */
static void end_function(napi_env env, void *data, void *context) {
    struct bridge *bridge = data;
    (void)env;
    (void)context;
    pthread_mutex_lock(&bridge->mutex);
    bridge->function = NULL;
    pthread_mutex_unlock(&bridge->mutex);
    leave_bridge(bridge);
}

/* --- Arguments and results --- */

static bool read_call(napi_env env, napi_callback_info info, size_t count, struct call *call) {
    call->env = env;
    call->count = ARGUMENTS_MAX;
    if (napi_get_cb_info(env, info, &call->count, call->arguments, NULL, NULL) != napi_ok) {
        return false;
    }
    if (call->count < count || count > ARGUMENTS_MAX) {
        fail(env, call->count < count ? "too few arguments" : "too many arguments");
        return false;
    }
    return true;
}

static bool read_handle(struct call *call, const napi_type_tag *tag, void **handle) {
    bool is_one = false;
    napi_value value = call->arguments[0];
    if (napi_check_object_type_tag(call->env, value, tag, &is_one) != napi_ok || !is_one ||
        napi_unwrap(call->env, value, handle) != napi_ok) {
        fail(call->env, "the first argument is not a handle of this type");
        return false;
    }
    return true;
}

static bool read_bridge(napi_env env, napi_callback_info info, size_t count, struct call *call,
                        struct bridge **bridge) {
    void *handle = NULL;
    bool is_read = read_call(env, info, count, call) && read_handle(call, &bridge_tag, &handle);
    *bridge = handle;
    return is_read;
}

static bool read_manager(napi_env env, napi_callback_info info, size_t count, struct call *call,
                         struct manager **manager) {
    void *handle = NULL;
    bool is_read = read_call(env, info, count, call) && read_handle(call, &manager_tag, &handle);
    *manager = handle;
    return is_read;
}

static bool read_lease(napi_env env, napi_callback_info info, size_t count, struct call *call,
                       struct lease **lease) {
    void *handle = NULL;
    bool is_read = read_call(env, info, count, call) && read_handle(call, &lease_tag, &handle);
    *lease = handle;
    return is_read;
}

static bool read_int64(struct call *call, size_t at, int64_t *number) {
    if (napi_get_value_int64(call->env, call->arguments[at], number) != napi_ok) {
        fail(call->env, "an argument is not a number");
        return false;
    }
    return true;
}

static bool read_int32(struct call *call, size_t at, int32_t *number) {
    if (napi_get_value_int32(call->env, call->arguments[at], number) != napi_ok) {
        fail(call->env, "an argument is not a number");
        return false;
    }
    return true;
}

static bool read_bool(struct call *call, size_t at, bool *truth) {
    if (napi_get_value_bool(call->env, call->arguments[at], truth) != napi_ok) {
        fail(call->env, "an argument is not a boolean");
        return false;
    }
    return true;
}

/* The number of a call, in the form that the library passes back. */
static bool read_id(struct call *call, size_t at, void **id) {
    uint32_t number = 0;
    if (napi_get_value_uint32(call->env, call->arguments[at], &number) != napi_ok) {
        fail(call->env, "an argument is not a number");
        return false;
    }
    *id = (void *)(uintptr_t)number;
    return true;
}

/* A copy with a NUL at its end, which the caller must free; NULL for null and undefined. It may hold a password. */
static bool read_text(struct call *call, size_t at, char **text) {
    napi_valuetype type = napi_undefined;
    size_t size = 0;
    *text = NULL;
    if (napi_typeof(call->env, call->arguments[at], &type) == napi_ok &&
        (type == napi_null || type == napi_undefined)) {
        return true;
    }
    if (napi_get_value_string_utf8(call->env, call->arguments[at], NULL, 0, &size) != napi_ok) {
        fail(call->env, "an argument is not a string");
        return false;
    }
    *text = allocate(size + 1);
    napi_get_value_string_utf8(call->env, call->arguments[at], *text, size + 1, &size);
    return true;
}

static void free_text(char *text) {
    if (text != NULL) {
        /* Not memset, because the compiler may remove writes to memory that is freed next. */
        volatile char *byte = text;
        while (*byte != '\0') {
            *byte++ = '\0';
        }
        free(text);
    }
}

/* A copy of the bytes of a Uint8Array, followed by a NUL. */
static bool read_bytes(struct call *call, size_t at, char **bytes, size_t *size) {
    napi_typedarray_type type = napi_int8_array;
    void *data = NULL;
    bool is_one = false;
    napi_value value = call->arguments[at];
    if (napi_is_typedarray(call->env, value, &is_one) != napi_ok || !is_one ||
        napi_get_typedarray_info(call->env, value, &type, size, &data, NULL, NULL) != napi_ok ||
        type != napi_uint8_array) {
        fail(call->env, "an argument is not a Uint8Array");
        return false;
    }
    *bytes = allocate(*size + 1);
    if (*size > 0) {
        memcpy(*bytes, data, *size);
    }
    return true;
}

static napi_value number(napi_env env, int64_t value) {
    napi_value result = NULL;
    napi_create_int64(env, value, &result);
    return result;
}

static napi_value truth(napi_env env, bool value) {
    napi_value result = NULL;
    napi_get_boolean(env, value, &result);
    return result;
}

static napi_value string(napi_env env, const char *text) {
    napi_value result = NULL;
    napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &result);
    return result;
}

/* An object that represents a handle. If it cannot be made, the handle is released. */
static napi_value wrap(napi_env env, void *handle, const napi_type_tag *tag, napi_finalize collect) {
    napi_value object = NULL;
    if (napi_create_object(env, &object) != napi_ok || napi_wrap(env, object, handle, collect, NULL, NULL) != napi_ok) {
        collect(env, handle, NULL);
        fail(env, "cannot create an object");
        return NULL;
    }
    if (napi_type_tag_object(env, object, tag) != napi_ok) {
        fail(env, "cannot create an object");
        return NULL;
    }
    return object;
}

/* --- The environment --- */

static void collect_bridge(napi_env env, void *data, void *hint) {
    (void)env;
    (void)hint;
    leave_bridge(data);
}

/* newBridge(function): the function is called with (kind, status, id, remaining, text). */
static napi_value NewBridge(napi_env env, napi_callback_info info) {
    struct call call;
    struct bridge *bridge;
    napi_value name = string(env, "redlock");
    if (!read_call(env, info, 1, &call)) {
        return NULL;
    }
    bridge = allocate(sizeof *bridge);
    /* The object, and the function. */
    atomic_init(&bridge->users, 2);
    pthread_mutex_init(&bridge->mutex, NULL);
    if (napi_create_threadsafe_function(env, call.arguments[0], NULL, name, 0, 1, bridge, end_function, NULL,
                                        hand_over, &bridge->function) != napi_ok) {
        leave_bridge(bridge);
        leave_bridge(bridge);
        fail(env, "cannot create a thread-safe function");
        return NULL;
    }
    /* While nothing is under way, the process may end. */
    napi_unref_threadsafe_function(env, bridge->function);
    return wrap(env, bridge, &bridge_tag, collect_bridge);
}

/* stayAlive(bridge, is_needed): whether the process must not end by itself. */
static napi_value StayAlive(napi_env env, napi_callback_info info) {
    struct call call;
    struct bridge *bridge;
    bool is_needed = false;
    if (read_bridge(env, info, 2, &call, &bridge) && read_bool(&call, 1, &is_needed) && bridge->function != NULL) {
        if (is_needed) {
            napi_ref_threadsafe_function(env, bridge->function);
        } else {
            napi_unref_threadsafe_function(env, bridge->function);
        }
    }
    return NULL;
}

static napi_value Version(napi_env env, napi_callback_info info) {
    (void)info;
    return string(env, RedLock_Version());
}

static napi_value StatusName(napi_env env, napi_callback_info info) {
    struct call call;
    int32_t status = 0;
    bool is_read = read_call(env, info, 1, &call) && read_int32(&call, 0, &status);
    return is_read ? string(env, RedLockStatus_Name(status)) : NULL;
}

/* --- The manager --- */

static void leave_manager(struct manager *manager) {
    if (atomic_fetch_sub(&manager->users, 1) == 1) {
        RedLock_Free(manager->rl);
        leave_bridge(manager->bridge);
        free(manager);
    }
}

static void collect_manager(napi_env env, void *data, void *hint) {
    (void)env;
    (void)hint;
    leave_manager(data);
}

/* newManager(bridge) */
static napi_value NewManager(napi_env env, napi_callback_info info) {
    struct call call;
    struct bridge *bridge;
    struct manager *manager;
    if (!read_bridge(env, info, 1, &call, &bridge)) {
        return NULL;
    }
    manager = allocate(sizeof *manager);
    atomic_init(&manager->users, 1);
    manager->bridge = enter_bridge(bridge);
    manager->rl = RedLock_New();
    if (manager->rl == NULL || RedLock_SetLanguage(manager->rl, REDLOCK_LANGUAGE_NODE) != REDLOCK_OK ||
        RedLock_SetEventCallback(manager->rl, tell_event, enter_bridge(bridge), forget_bridge) != REDLOCK_OK ||
        RedLock_SetBackgroundThread(manager->rl, true) != REDLOCK_OK) {
        fail(env, manager->rl == NULL ? "RedLock_New returned NULL" : RedLock_ErrorMessage(manager->rl));
        leave_manager(manager);
        return NULL;
    }
    return wrap(env, manager, &manager_tag, collect_manager);
}

/* closeManager(manager): frees the manager. Its leases stay valid handles. */
static napi_value CloseManager(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    if (read_manager(env, info, 1, &call, &manager)) {
        if (manager->waiting > 0) {
            fail(env, "a call still waits on the manager");
            return NULL;
        }
        RedLock_Free(manager->rl);
        manager->rl = NULL;
    }
    return NULL;
}

static napi_value ManagerMessage(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    char message[MESSAGE_SIZE];
    if (!read_manager(env, info, 1, &call, &manager)) {
        return NULL;
    }
    RedLock_CopyErrorMessage(manager->rl, message, sizeof message);
    return string(env, message);
}

static napi_value server(napi_env env, const RedLockServerInfo *info) {
    napi_value offset = NULL;
    if (info->clock_offset_us == INT64_MIN) {
        napi_get_null(env, &offset);
    } else {
        offset = number(env, info->clock_offset_us);
    }
    const struct {
        const char *name;
        napi_value value;
    } fields[] = {
        {"name", string(env, info->name)},
        {"isConnected", truth(env, info->connected != 0)},
        {"votes", truth(env, info->votes != 0)},
        {"words", string(env, info->words)},
        {"roundTripUs", number(env, info->round_trip_us)},
        {"clockOffsetUs", offset},
        {"version", string(env, info->version)},
        {"role", string(env, info->role)},
        {"runId", string(env, info->run_id)},
        {"keeps", string(env, info->keeps)},
        {"eviction", string(env, info->eviction)},
    };
    napi_value object = NULL;
    napi_create_object(env, &object);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        napi_set_named_property(env, object, fields[i].name, fields[i].value);
    }
    return object;
}

static napi_value outcomes(napi_env env, const RedLockOutcomes *it) {
    const struct { const char *name; uint64_t count; } fields[] = {
        {"ok", it->ok}, {"taken", it->taken}, {"unreachable", it->unreachable}, {"tooSlow", it->too_slow},
        {"lost", it->lost}, {"tooShort", it->too_short}, {"cancelled", it->cancelled}, {"failed", it->failed},
    };
    napi_value object = NULL;
    napi_create_object(env, &object);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        napi_set_named_property(env, object, fields[i].name, number(env, (int64_t)fields[i].count));
    }
    return object;
}

static napi_value histogram(napi_env env, const RedLockHistogram *it) {
    napi_value object = NULL, buckets = NULL;
    napi_create_object(env, &object);
    napi_create_array_with_length(env, REDLOCK_HISTOGRAM_BUCKETS, &buckets);
    for (uint32_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        napi_set_element(env, buckets, i, number(env, (int64_t)it->buckets[i]));
    }
    napi_set_named_property(env, object, "count", number(env, (int64_t)it->count));
    napi_set_named_property(env, object, "sumUs", number(env, it->sum_us));
    napi_set_named_property(env, object, "buckets", buckets);
    return object;
}

/* stats(manager): lib/manager.js converts the numbers to times. */
static napi_value GetStats(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    RedLockStats stats = REDLOCK_STATS_INIT;
    if (!read_manager(env, info, 1, &call, &manager)) {
        return NULL;
    }
    RedLock_GetStats(manager->rl, &stats);
    const struct { const char *name; napi_value value; } fields[] = {
        {"acquire", outcomes(env, &stats.acquire)},
        {"extend", outcomes(env, &stats.extend)},
        {"confirm", outcomes(env, &stats.confirm)},
        {"release", outcomes(env, &stats.release)},
        {"adopt", outcomes(env, &stats.adopt)},
        {"inspect", outcomes(env, &stats.inspect)},
        {"detached", number(env, (int64_t)stats.detached)},
        {"attempts", number(env, (int64_t)stats.attempts)},
        {"waits", number(env, (int64_t)stats.waits)},
        {"renewed", number(env, (int64_t)stats.renewed)},
        {"notRenewed", number(env, (int64_t)stats.not_renewed)},
        {"keptLost", number(env, (int64_t)stats.kept_lost)},
        {"requests", number(env, (int64_t)stats.requests)},
        {"connections", number(env, (int64_t)stats.connections)},
        {"connectionsLost", number(env, (int64_t)stats.connections_lost)},
        {"connectionsFailed", number(env, (int64_t)stats.connections_failed)},
        {"waiting", number(env, (int64_t)stats.waiting)},
        {"kept", number(env, (int64_t)stats.kept)},
        {"acquireTime", histogram(env, &stats.acquire_time)},
        {"waitTime", histogram(env, &stats.wait_time)},
        {"holdTime", histogram(env, &stats.hold_time)},
        {"roundTrip", histogram(env, &stats.round_trip)},
    };
    napi_value object = NULL, bounds = NULL;
    napi_create_object(env, &object);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        napi_set_named_property(env, object, fields[i].name, fields[i].value);
    }
    napi_create_array_with_length(env, REDLOCK_HISTOGRAM_BOUNDS, &bounds);
    for (uint32_t i = 0; i < REDLOCK_HISTOGRAM_BOUNDS; i++) {
        napi_set_element(env, bounds, i, number(env, stats.bounds_us[i]));
    }
    napi_set_named_property(env, object, "boundsUs", bounds);
    return object;
}

static napi_value StatsText(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    if (!read_manager(env, info, 1, &call, &manager)) {
        return NULL;
    }
    size_t size = 0, needed = RedLock_StatsText(manager->rl, NULL, 0);
    char *text = NULL;
    while (needed >= size) {
        free(text);
        size = needed + 1;
        text = allocate(size);
        needed = RedLock_StatsText(manager->rl, text, size);
    }
    napi_value result = string(env, text);
    free(text);
    return result;
}

/* servers(manager): an array, even if nothing is known. */
static napi_value Servers(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    napi_value result = NULL;
    size_t count = 0;
    if (!read_manager(env, info, 1, &call, &manager)) {
        return NULL;
    }
    RedLock_Servers(manager->rl, NULL, &count);
    RedLockServerInfo *infos = allocate((count + 1) * sizeof *infos);
    infos[0].size = sizeof *infos;
    if (RedLock_Servers(manager->rl, infos, &count) != REDLOCK_OK) {
        count = 0;
    }
    napi_create_array_with_length(env, count, &result);
    for (size_t i = 0; i < count; i++) {
        napi_set_element(env, result, (uint32_t)i, server(env, &infos[i]));
    }
    free(infos);
    return result;
}

/* setLogger(manager, id): lines are passed on with this number. */
static napi_value SetLogger(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    void *id = NULL;
    struct log_source *source;
    if (!read_manager(env, info, 2, &call, &manager) || !read_id(&call, 1, &id)) {
        return NULL;
    }
    source = allocate(sizeof *source);
    source->bridge = enter_bridge(manager->bridge);
    source->id = (uint32_t)(uintptr_t)id;
    return number(env, RedLock_SetLogger(manager->rl, tell_line, source, forget_log_source));
}

static napi_value AddServer(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    char *url = NULL;
    napi_value status = NULL;
    if (read_manager(env, info, 2, &call, &manager) && read_text(&call, 1, &url)) {
        status = number(env, RedLock_AddServerUrl(manager->rl, url, 0));
    }
    free_text(url);
    return status;
}

static napi_value SetRetry(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    int32_t count = 0, delay_ms = 0;
    bool is_read = read_manager(env, info, 3, &call, &manager) && read_int32(&call, 1, &count) &&
                   read_int32(&call, 2, &delay_ms);
    return is_read ? number(env, RedLock_SetRetry(manager->rl, count, delay_ms)) : NULL;
}

static napi_value SetTimeouts(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    int64_t connect_ms = 0, reply_ms = 0;
    bool is_read = read_manager(env, info, 3, &call, &manager) && read_int64(&call, 1, &connect_ms) &&
                   read_int64(&call, 2, &reply_ms);
    return is_read ? number(env, RedLock_SetTimeouts(manager->rl, connect_ms, reply_ms)) : NULL;
}

static napi_value SetDriftFactor(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    double factor = 0;
    if (!read_manager(env, info, 2, &call, &manager)) {
        return NULL;
    }
    if (napi_get_value_double(env, call.arguments[1], &factor) != napi_ok) {
        fail(env, "an argument is not a number");
        return NULL;
    }
    return number(env, RedLock_SetClockDriftFactor(manager->rl, factor));
}

static napi_value SetRestartGuard(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    int32_t mode = 0;
    int64_t longest_ttl_ms = 0, cap_ms = 0;
    bool is_read = read_manager(env, info, 4, &call, &manager) && read_int32(&call, 1, &mode) &&
                   read_int64(&call, 2, &longest_ttl_ms) && read_int64(&call, 3, &cap_ms);
    return is_read ? number(env, RedLock_SetRestartGuard(manager->rl, mode, longest_ttl_ms, cap_ms)) : NULL;
}

static napi_value SetFailoverGuard(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    bool is_enabled = false;
    bool is_read = read_manager(env, info, 2, &call, &manager) && read_bool(&call, 1, &is_enabled);
    return is_read ? number(env, RedLock_SetFailoverGuard(manager->rl, is_enabled)) : NULL;
}

static napi_value SetFencing(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    bool is_enabled = false;
    bool is_read = read_manager(env, info, 2, &call, &manager) && read_bool(&call, 1, &is_enabled);
    return is_read ? number(env, RedLock_SetFencing(manager->rl, is_enabled)) : NULL;
}

static napi_value SetTracing(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    int32_t events = 0;
    bool is_read = read_manager(env, info, 2, &call, &manager) && read_int32(&call, 1, &events);
    return is_read ? number(env, RedLock_SetTracing(manager->rl, events)) : NULL;
}

static napi_value SetWaking(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    bool is_enabled = false;
    bool is_read = read_manager(env, info, 2, &call, &manager) && read_bool(&call, 1, &is_enabled);
    return is_read ? number(env, RedLock_SetWaking(manager->rl, is_enabled)) : NULL;
}

/* Four functions of the library that take two strings, or one. */
static napi_value set_texts(napi_env env, napi_callback_info info,
                            RedLockStatus (*set)(RedLock *rl, const char *first, const char *second)) {
    struct call call;
    struct manager *manager;
    char *first = NULL, *second = NULL;
    napi_value status = NULL;
    if (read_manager(env, info, 3, &call, &manager) && read_text(&call, 1, &first) &&
        read_text(&call, 2, &second)) {
        status = number(env, set(manager->rl, first, second));
    }
    free_text(first);
    free_text(second);
    return status;
}

static RedLockStatus set_tls_ca(RedLock *rl, const char *file, const char *nothing) {
    (void)nothing;
    return RedLock_SetTlsCa(rl, file);
}

static RedLockStatus set_tls_server_name(RedLock *rl, const char *name, const char *nothing) {
    (void)nothing;
    return RedLock_SetTlsServerName(rl, name);
}

static napi_value SetCredentials(napi_env env, napi_callback_info info) {
    return set_texts(env, info, RedLock_SetCredentials);
}

static napi_value SetCredentialsFromEnv(napi_env env, napi_callback_info info) {
    return set_texts(env, info, RedLock_SetCredentialsFromEnv);
}

static napi_value SetTlsCertificate(napi_env env, napi_callback_info info) {
    return set_texts(env, info, RedLock_SetTlsCertificate);
}

static napi_value SetTlsCa(napi_env env, napi_callback_info info) {
    return set_texts(env, info, set_tls_ca);
}

static napi_value SetTlsServerName(napi_env env, napi_callback_info info) {
    return set_texts(env, info, set_tls_server_name);
}

static napi_value SetTlsInsecureSkipVerify(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    bool skip = false;
    bool is_read = read_manager(env, info, 2, &call, &manager) && read_bool(&call, 1, &skip);
    return is_read ? number(env, RedLock_SetTlsInsecureSkipVerify(manager->rl, skip)) : NULL;
}

/* --- Calls that wait, on threads of Node.js --- */

static void do_job(napi_env env, void *data) {
    struct job *job = data;
    RedLock *rl = job->manager->rl;
    (void)env;
    if (job->resource == NULL) {
        job->status = RedLock_Connect(rl, job->timeout_ms);
    } else if (job->inspects) {
        job->info.size = sizeof job->info;
        job->status = RedLock_Inspect(rl, job->resource, 0, &job->info);
    } else {
        job->status = RedLock_IsLocked(rl, job->resource, &job->is_locked);
    }
    RedLock_CopyErrorMessage(rl, job->message, sizeof job->message);
}

static void free_job(napi_env env, struct job *job) {
    if (job->work != NULL) {
        napi_delete_async_work(env, job->work);
    }
    leave_manager(job->manager);
    free(job->resource);
    free(job);
}

/* The result of inspect. */
static napi_value info_of(napi_env env, const RedLockInfo *found) {
    napi_value result = NULL;
    if (napi_create_object(env, &result) == napi_ok) {
        napi_set_named_property(env, result, "isLocked", truth(env, found->locked != 0));
        napi_set_named_property(env, result, "remaining", number(env, found->remaining_ms));
        napi_set_named_property(env, result, "isShared", truth(env, found->mode == REDLOCK_SHARED));
        napi_set_named_property(env, result, "readers", number(env, found->readers));
        napi_set_named_property(env, result, "permitsTaken", number(env, found->permits_taken));
        napi_set_named_property(env, result, "words", string(env, found->words));
    }
    return result;
}

/* Settles the promise with [status, message, isLocked], or with the result of inspect instead of isLocked. */
static void end_job(napi_env env, napi_status how, void *data) {
    struct job *job = data;
    napi_value result = NULL;
    job->manager->waiting--;
    if (how == napi_ok && napi_create_array_with_length(env, 3, &result) == napi_ok) {
        napi_set_element(env, result, 0, number(env, job->status));
        napi_set_element(env, result, 1, string(env, job->message));
        napi_value answer = job->inspects ? info_of(env, &job->info) : truth(env, job->is_locked);
        napi_set_element(env, result, 2, answer);
        napi_resolve_deferred(env, job->deferred, result);
    }
    free_job(env, job);
}

static napi_value start_job(napi_env env, struct manager *manager, char *resource, bool inspects, int32_t permits,
                            int64_t timeout_ms) {
    napi_value promise = NULL, name = string(env, "redlock");
    struct job *job = allocate(sizeof *job);
    atomic_fetch_add(&manager->users, 1);
    job->manager = manager;
    job->resource = resource;
    job->inspects = inspects;
    job->info.permits = permits;
    job->timeout_ms = timeout_ms;
    if (napi_create_async_work(env, NULL, name, do_job, end_job, job, &job->work) != napi_ok ||
        napi_create_promise(env, &job->deferred, &promise) != napi_ok ||
        napi_queue_async_work(env, job->work) != napi_ok) {
        free_job(env, job);
        fail(env, "cannot start a thread for the call");
        return NULL;
    }
    manager->waiting++;
    return promise;
}

/* connect(manager, timeout) */
static napi_value Connect(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    int64_t timeout_ms = 0;
    bool is_read = read_manager(env, info, 2, &call, &manager) && read_int64(&call, 1, &timeout_ms);
    return is_read ? start_job(env, manager, NULL, false, 0, timeout_ms) : NULL;
}

/* Calls about a resource. */
static napi_value ask_about(napi_env env, napi_callback_info info, bool inspects) {
    struct call call;
    struct manager *manager;
    char *resource = NULL;
    size_t size = 0;
    int32_t permits = 0;
    bool is_read = read_manager(env, info, inspects ? 3 : 2, &call, &manager) &&
                   (!inspects || read_int32(&call, 2, &permits)) && read_bytes(&call, 1, &resource, &size);
    return is_read ? start_job(env, manager, resource, inspects, permits, 0) : NULL;
}

/* isLocked(manager, resource) */
static napi_value IsLocked(napi_env env, napi_callback_info info) {
    return ask_about(env, info, false);
}

/* inspect(manager, resource, permits) */
static napi_value Inspect(napi_env env, napi_callback_info info) {
    return ask_about(env, info, true);
}

/* --- The lease --- */

static void collect_lease(napi_env env, void *data, void *hint) {
    struct lease *lease = data;
    (void)env;
    (void)hint;
    RedLockLease_Free(lease->lease);
    leave_manager(lease->manager);
    free(lease);
}

/* newLease(manager) */
static napi_value NewLease(napi_env env, napi_callback_info info) {
    struct call call;
    struct manager *manager;
    struct lease *lease;
    if (!read_manager(env, info, 1, &call, &manager)) {
        return NULL;
    }
    lease = allocate(sizeof *lease);
    lease->lease = RedLockLease_New();
    atomic_fetch_add(&manager->users, 1);
    lease->manager = manager;
    if (lease->lease == NULL) {
        collect_lease(env, lease, NULL);
        fail(env, "RedLockLease_New returned NULL");
        return NULL;
    }
    return wrap(env, lease, &lease_tag, collect_lease);
}

/* Finds where the names of several resources begin. Each name ends with a NUL. If there are too many, the library
 * reads none. */
static void read_names(const char *name, size_t count, RedLockAcquireOptions *options, const char **names, size_t room) {
    for (size_t i = 0; i < count && i < room; i++) {
        names[i] = name;
        name += strlen(name) + 1;
    }
    options->resource = NULL;
    options->resource_size = 0;
    options->resources = names;
    options->resource_count = count;
}

/* acquire(lease, id, resource, ttl, wait, tries, keepAlive, permits, count, shared). For several resources, resource
 * contains all names, each with a NUL, and count is their number; otherwise count is 0. */
static napi_value Acquire(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    char *resource = NULL;
    const char *names[128];
    int32_t count = 0;
    void *id = NULL;
    bool keep_alive = false, shared = false;
    napi_value status = NULL;
    if (read_lease(env, info, 10, &call, &lease) && read_id(&call, 1, &id) && read_int32(&call, 7, &options.permits) &&
        read_int32(&call, 8, &count) &&
        read_int64(&call, 3, &options.ttl_ms) && read_int64(&call, 4, &options.wait_ms) &&
        read_int32(&call, 5, &options.tries) && read_bool(&call, 6, &keep_alive) &&
        read_bool(&call, 9, &shared) &&
        read_bytes(&call, 2, &resource, &options.resource_size)) {
        options.resource = resource;
        options.keep_alive = keep_alive;
        options.mode = shared ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE;
        if (count > 0) {
            read_names(resource, (size_t)count, &options, names, sizeof names / sizeof *names);
        }
        status = number(env, RedLock_SubmitAcquire(lease->manager->rl, &options, lease->lease, id));
    }
    free(resource);
    return status;
}

/* adopt(lease, id, ticket) */
static napi_value Adopt(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    char *ticket = NULL;
    size_t size = 0;
    void *id = NULL;
    napi_value status = NULL;
    if (read_lease(env, info, 3, &call, &lease) && read_id(&call, 1, &id) && read_bytes(&call, 2, &ticket, &size)) {
        status = number(env, RedLock_SubmitAdopt(lease->manager->rl, ticket, lease->lease, id));
    }
    free(ticket);
    return status;
}

/* detach(lease): the ticket, or a status. */
static napi_value Detach(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    if (!read_lease(env, info, 1, &call, &lease)) {
        return NULL;
    }
    size_t bytes = RedLockLease_ResourceSize(lease->lease);
    size_t count = RedLockLease_ResourceCount(lease->lease);
    for (size_t i = 0; count > 1 && i < count; i++) {
        bytes += strlen(RedLockLease_ResourceAt(lease->lease, i)) + 2;
    }
    size_t size = REDLOCK_TICKET_SIZE(bytes);
    char *ticket = allocate(size);
    RedLockStatus status = RedLock_Detach(lease->manager->rl, lease->lease, ticket, size);
    napi_value result = status == REDLOCK_OK ? string(env, ticket) : number(env, status);
    free(ticket);
    return result;
}

/* resource(lease): its bytes. Only while no call is under way, as for token(lease). */
static napi_value Resource(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    napi_value result = NULL;
    if (read_lease(env, info, 1, &call, &lease)) {
        size_t size = RedLockLease_ResourceSize(lease->lease);
        napi_create_buffer_copy(env, size, RedLockLease_Resource(lease->lease), NULL, &result);
    }
    return result;
}

/* resourceAt(lease, at): the bytes of one of several resources; none if there is no such index. */
static napi_value ResourceAt(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    int32_t at = 0;
    napi_value result = NULL;
    if (read_lease(env, info, 2, &call, &lease) && read_int32(&call, 1, &at) && at >= 0 &&
        (size_t)at < RedLockLease_ResourceCount(lease->lease)) {
        const char *name = RedLockLease_ResourceAt(lease->lease, (size_t)at);
        napi_create_buffer_copy(env, strlen(name), name, NULL, &result);
    }
    return result;
}

/* Calls with a time: extend(lease, id, ttl), confirm(lease, id, least) and unlockAfter(lease, id, least). */
static napi_value submit_timed(napi_env env, napi_callback_info info,
                               RedLockStatus (*submit)(RedLock *rl, RedLockLease *lease, int64_t ms, void *id)) {
    struct call call;
    struct lease *lease;
    void *id = NULL;
    int64_t ms = 0;
    bool is_read = read_lease(env, info, 3, &call, &lease) && read_id(&call, 1, &id) && read_int64(&call, 2, &ms);
    return is_read ? number(env, submit(lease->manager->rl, lease->lease, ms, id)) : NULL;
}

static napi_value Extend(napi_env env, napi_callback_info info) {
    return submit_timed(env, info, RedLock_SubmitExtend);
}

static napi_value UnlockAfter(napi_env env, napi_callback_info info) {
    return submit_timed(env, info, RedLock_SubmitUnlockAfter);
}

static napi_value Confirm(napi_env env, napi_callback_info info) {
    return submit_timed(env, info, RedLock_SubmitConfirm);
}

/* unlock(lease, id), downgrade(lease, id) and keepAlive(lease, id). */
static napi_value submit_plain(napi_env env, napi_callback_info info,
                               RedLockStatus (*submit)(RedLock *rl, RedLockLease *lease, void *id)) {
    struct call call;
    struct lease *lease;
    void *id = NULL;
    bool is_read = read_lease(env, info, 2, &call, &lease) && read_id(&call, 1, &id);
    return is_read ? number(env, submit(lease->manager->rl, lease->lease, id)) : NULL;
}

static napi_value Unlock(napi_env env, napi_callback_info info) {
    return submit_plain(env, info, RedLock_SubmitUnlock);
}

static napi_value Downgrade(napi_env env, napi_callback_info info) {
    return submit_plain(env, info, RedLock_SubmitDowngrade);
}

static napi_value KeepAlive(napi_env env, napi_callback_info info) {
    return submit_plain(env, info, RedLock_KeepAlive);
}

/* cancel(lease) */
static napi_value Cancel(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    bool is_read = read_lease(env, info, 1, &call, &lease);
    return is_read ? number(env, RedLock_Cancel(lease->manager->rl, lease->lease)) : NULL;
}

static napi_value IsHeld(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    return read_lease(env, info, 1, &call, &lease) ? truth(env, RedLockLease_IsHeld(lease->lease)) : NULL;
}

static napi_value IsShared(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    bool is_read = read_lease(env, info, 1, &call, &lease);
    return is_read ? truth(env, RedLockLease_Mode(lease->lease) == REDLOCK_SHARED) : NULL;
}

static napi_value Remaining(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    return read_lease(env, info, 1, &call, &lease) ? number(env, RedLockLease_RemainingMs(lease->lease)) : NULL;
}

/* token(lease): only while no call is under way, because its end would change the string on another thread. */
static napi_value Token(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    return read_lease(env, info, 1, &call, &lease) ? string(env, RedLockLease_Token(lease->lease)) : NULL;
}

static napi_value FencingToken(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    return read_lease(env, info, 1, &call, &lease) ? number(env, RedLockLease_FencingToken(lease->lease)) : NULL;
}

static napi_value Retain(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    return read_lease(env, info, 1, &call, &lease) ? number(env, RedLock_Retain(lease->lease)) : NULL;
}

static napi_value Levels(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    return read_lease(env, info, 1, &call, &lease) ? number(env, RedLockLease_Levels(lease->lease)) : NULL;
}

/* leaseMessage(lease): a copy, because a call that is under way may end at this moment. */
static napi_value LeaseMessage(napi_env env, napi_callback_info info) {
    struct call call;
    struct lease *lease;
    char few[MESSAGE_SIZE], *many;
    size_t size;
    napi_value result;
    if (!read_lease(env, info, 1, &call, &lease)) {
        return NULL;
    }
    size = RedLockLease_CopyErrorMessage(lease->lease, few, sizeof few) + 1;
    if (size <= sizeof few) {
        return string(env, few);
    }
    many = allocate(size);
    RedLockLease_CopyErrorMessage(lease->lease, many, size);
    result = string(env, many);
    free(many);
    return result;
}

static const struct {
    const char *name;
    napi_callback function;
} functions[] = {
    {"newBridge", NewBridge},
    {"stayAlive", StayAlive},
    {"version", Version},
    {"statusName", StatusName},
    {"newManager", NewManager},
    {"closeManager", CloseManager},
    {"managerMessage", ManagerMessage},
    {"servers", Servers},
    {"stats", GetStats},
    {"statsText", StatsText},
    {"setTracing", SetTracing},
    {"setLogger", SetLogger},
    {"addServer", AddServer},
    {"setRetry", SetRetry},
    {"setTimeouts", SetTimeouts},
    {"setDriftFactor", SetDriftFactor},
    {"setRestartGuard", SetRestartGuard},
    {"setFailoverGuard", SetFailoverGuard},
    {"setFencing", SetFencing},
    {"setWaking", SetWaking},
    {"setCredentials", SetCredentials},
    {"setCredentialsFromEnv", SetCredentialsFromEnv},
    {"setTlsCa", SetTlsCa},
    {"setTlsCertificate", SetTlsCertificate},
    {"setTlsServerName", SetTlsServerName},
    {"setTlsInsecureSkipVerify", SetTlsInsecureSkipVerify},
    {"connect", Connect},
    {"isLocked", IsLocked},
    {"inspect", Inspect},
    {"adopt", Adopt},
    {"detach", Detach},
    {"resource", Resource},
    {"resourceAt", ResourceAt},
    {"newLease", NewLease},
    {"acquire", Acquire},
    {"extend", Extend},
    {"confirm", Confirm},
    {"unlock", Unlock},
    {"unlockAfter", UnlockAfter},
    {"downgrade", Downgrade},
    {"keepAlive", KeepAlive},
    {"cancel", Cancel},
    {"isHeld", IsHeld},
    {"isShared", IsShared},
    {"remaining", Remaining},
    {"token", Token},
    {"fencingToken", FencingToken},
    {"retain", Retain},
    {"levels", Levels},
    {"leaseMessage", LeaseMessage},
};

NAPI_MODULE_INIT() {
    if (strncmp(RedLock_Version(), INTERFACE, strlen(INTERFACE)) != 0) {
        char words[128];
        snprintf(words, sizeof words, "the library is redlock %s, and this module is for " INTERFACE "x",
                 RedLock_Version());
        fail(env, words);
        return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        napi_value function = NULL;
        if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL,
                                 &function) != napi_ok ||
            napi_set_named_property(env, exports, functions[i].name, function) != napi_ok) {
            fail(env, "cannot export the functions of the module");
            return NULL;
        }
    }
    return exports;
}
