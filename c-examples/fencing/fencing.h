/*
 * The common part of the fencing demo's files: the story (main.c), the workers that take locks (worker.c), and
 * the databases that they write to (sqlite.c, postgres.c).
 */
#ifndef FENCING_H
#define FENCING_H

#include <stdatomic.h>

#include "../demo/common.h"

enum { SERVERS = 3 };

/*
 * The data that the lock protects: the balance of an account, in a row of a database. The statements are the
 * same for both databases.
 *
 * A holder of a lock with a fencing token first writes the token into the row, and then its work. Each of these
 * statements changes no row if a greater token is there, because somebody has taken the lock since.
 *
 *  - It is <= and not <, because a holder may write more than once, and its token stays the same.
 *  - The holder writes its token before it reads. Otherwise a late holder could still write after the next
 *    holder has read, and before the next holder has written.
 */
#define CREATE_SQL "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL)"
#define INSERT_SQL "INSERT INTO account VALUES (:id, :balance, 0)"
#define READ_SQL "SELECT balance FROM account WHERE id = :id"
#define CLAIM_SQL "UPDATE account SET fence = :token WHERE id = :id AND fence <= :token"
#define FENCED_SQL "UPDATE account SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token"
#define UNFENCED_SQL "UPDATE account SET balance = :balance WHERE id = :id"

/* The values that a statement may name: :id, :balance and :token. */
struct values {
    int64_t id;
    int64_t balance;
    int64_t token;
};

enum { FAILED = -1 };

/* A database. */
struct store {
    const char *name;
    /* Returns how many rows were changed; FAILED on an error, after an error message on stderr. */
    int (*run)(const char *sql, const struct values *values);
    /* Reads the balance of the account; false on an error. */
    bool (*read)(const struct values *values, int64_t *balance);
};

/* sqlite.c: a file in this directory. */
extern const struct store sqlite;
bool sqlite_open(const char *directory);
void sqlite_close(void);

/* postgres.c: a PostgreSQL of the demo's own, if PostgreSQL is installed. */
extern const struct store postgres;
bool postgres_is_installed(void);
void postgres_begin(const char *directory); /* begins to create a database there, in the background */
bool postgres_is_ready(void); /* waits until it answers; returns false after an error message if it never will */
void postgres_end(void);

/* clock.c: servers whose clocks can be set. */
bool clock_can_be_set(const char *program, const char *directory);
void clock_prepare(const struct server *server); /* in the process of the server */
bool clock_set_forward(struct server *server);   /* by an hour */
void clock_forget(const struct server *server);

/* The instructions for a worker. */
struct orders {
    const char *name;             /* used in its messages */
    const char *resource;
    const struct server *servers; /* there are SERVERS of them */
    int guard;                    /* REDLOCK_GUARD_ON or REDLOCK_GUARD_OFF */
    int ttl_ms;
    bool waits;                   /* connects to all servers, then waits until the story lets it try */

    /* For adding an amount to the balance of an account: */
    const struct store *store;
    bool has_token;               /* the lock comes with a fencing token */
    int64_t account;
    int64_t amount;
    bool freezes;                 /* right before the first write */
};

/* The memory that a worker and the story share. */
struct place {
    atomic_bool is_connected; /* a waiting worker is connected to all servers */
    atomic_bool may_try;   /* a waiting worker may try */
    atomic_bool was_had;   /* the lock was taken */
    atomic_bool is_tried;  /* the attempt has ended, whatever its result */
    atomic_bool may_end;   /* the story needs no more */
    atomic_bool was_kept;  /* the lock was still held when the story needed no more */
    atomic_bool was_refused; /* by the database */
    char words[1024];      /* why the lock was not taken */
};

/* worker.c: each returns an exit code. */
int deposit(const struct orders *orders, struct place *place);
int hold(const struct orders *orders, struct place *place);

#endif
