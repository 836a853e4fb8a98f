/* The account in a file of SQLite. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fencing.h"

enum { BUSY_MS = 20000 };

static char path[300];

static bool fail(sqlite3 *db) {
    complain("SQLite: %s", db == NULL ? "no memory" : sqlite3_errmsg(db));
    return false;
}

static void set(sqlite3_stmt *statement, const char *name, int64_t value) {
    int index = sqlite3_bind_parameter_index(statement, name); /* 0: the statement does not name it */
    if (index > 0) {
        sqlite3_bind_int64(statement, index, value);
    }
}

/* Gives the number of changed rows, or the number that was read. */
static bool execute(const char *sql, const struct values *values, int64_t *number) {
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    bool is_done = false;
    if (sqlite3_open(path, &db) == SQLITE_OK && sqlite3_busy_timeout(db, BUSY_MS) == SQLITE_OK
        && sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        set(statement, ":id", values->id);
        set(statement, ":balance", values->balance);
        set(statement, ":token", values->token);
        int how = sqlite3_step(statement);
        is_done = how == SQLITE_DONE || how == SQLITE_ROW;
        *number = how == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : sqlite3_changes(db);
    }
    if (!is_done) {
        fail(db);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return is_done;
}

static int run(const char *sql, const struct values *values) {
    int64_t changed = 0;
    return execute(sql, values, &changed) ? (int)changed : FAILED;
}

static bool read_balance(const struct values *values, int64_t *balance) {
    return execute(READ_SQL, values, balance);
}

const struct store sqlite = {"SQLite", run, read_balance};

bool sqlite_open(const char *directory) {
    const struct values nothing = {0};
    snprintf(path, sizeof path, "%s/accounts.db", directory);
    return run(CREATE_SQL, &nothing) != FAILED;
}

void sqlite_close(void) {
    char journal[320];
    snprintf(journal, sizeof journal, "%s-journal", path);
    unlink(journal); /* left by a run that was ended early */
    unlink(path);
}
