/*
 * CRedLock and CLock over redlock.h, for programs written for the hiredis-based library of that name: they
 * compile with no change except the include directory and the link line (-lredlock). C++98 and later; header
 * only. New programs use ../redlock.hpp instead.
 *
 *     CRedLock * dlm = new CRedLock();
 *     dlm->AddServerUrl("127.0.0.1", 5005);
 *     dlm->AddServerUrl("127.0.0.1", 5006);
 *     dlm->AddServerUrl("127.0.0.1", 5007);
 *     CLock my_lock;
 *     if (dlm->Lock("foo", 10000, my_lock)) { ... dlm->Unlock(my_lock); }
 *
 * Key and value on the servers are the same as in the old library. So old and new processes exclude each other,
 * and a fleet can move one process at a time.
 *
 * The compiler must find this header, and not the old one. A program that says #include "redlock-cpp/redlock.h"
 * finds the old header if a directory redlock-cpp is beside the source, as in that library's own tree, whatever
 * -I says. The linker then misses CRedLock::CRedLock() and all other members. Do one of these:
 *  - remove the directories redlock-cpp and hiredis from the tree;
 *  - keep them, and compile with -include $PREFIX/include/redlock-cpp/redlock.h: the old header then adds
 *    nothing;
 *  - write #include <redlock-cpp/redlock.h>, and put -I$PREFIX/include before -I. and similar options.
 * Remove redlock.o, sds.o, -lhiredis and -L./bin from the link line: the old library is called libredlock.a,
 * too.
 *
 * Intended differences from the last state of that library (2018):
 *  - Nothing is printed, and the process is never ended.
 *  - Neither hiredis.h nor sds.h is included, and none of their functions is linked. m_resource and m_val are
 *    still sds strings; see CLock.
 *  - The quorum is more than half of the servers added, including servers that are down. The old library did
 *    the same until 2018. Since then, and with its own hiredis, it leaves out a server that is down when it is
 *    added. Its quorum is more than half of the others: with one of three servers up, that server granted all
 *    locks.
 *  - A server that was down when it was added, or whose connection was lost, is used as soon as it is back. The
 *    old library did not use it again for as long as the CRedLock lived.
 *  - AddServerUrl makes no connection. The first Lock or ContinueLock closes the list of servers, and the same
 *    server does not count twice. AddServerUrl returns false in these cases, and for an argument that cannot be
 *    a server.
 *  - Without servers nothing is locked: Lock and ContinueLock return false. The old library returned true.
 *  - A second call of Initialize leaves the quorum as it is. In the old library any lock was granted after it,
 *    until a server was added.
 *  - SetRetry accepts a delay of 0. The old library ended the process.
 *  - An empty resource is invalid: Lock and ContinueLock return false. In the old library it was a key without
 *    a name.
 *  - Times are measured in milliseconds, on a clock that counts suspend, so a TTL of 3 is too short. All
 *    servers are asked at once, each for a limited time. There is no pause after the last try.
 *  - ContinueLock keeps the token for as long as it keeps the lock. In the old library each call made a new
 *    token. So after ContinueLock("x", 10000, a) and ContinueLock("x", 10000, b), a and b hold the same lock,
 *    and Unlock(a) RELEASES it for both. In the old library Unlock(a) did nothing any more.
 *  - ContinueLock never shortens a lock. With a TTL shorter than the remaining time it returns true, and the
 *    lock stays until its old expiry, which m_validityTime shows. The old library shortened the lock.
 *  - A ContinueLock that fails leaves the old lock alone, which lasts until its old expiry. The old library
 *    released it, where it could.
 *  - Each resource is continued on its own. In the old library, a caller that continued a second resource could
 *    not continue the first until it had expired.
 *  - ContinueLock with a CLock that Lock has filled renews that lock. The old library refused this until the
 *    lock had expired.
 *  - If ContinueLock finds that its lock ended before its time, it returns false once, so that the caller
 *    notices the gap; the next call takes the lock again. The old library took it again at once.
 *  - m_val is empty, and not the token of a failed try, when a Lock or ContinueLock ends without the lock;
 *    m_validityTime is then 0. After an Unlock both stay as they were until the next of these calls. If a
 *    failed ContinueLock leaves a lock alone, the CLock shows its token and its remaining validity.
 *  - Unlock releases the lock that the previous call took. The members are only shown. A program that writes
 *    another token into m_val, or another name into m_resource, changes nothing, and a CLock whose members were
 *    filled by hand holds nothing. In the old library Unlock deleted the lock that the members named.
 *  - Unlock may return false; see there.
 *  - Lock and ContinueLock free the strings that the CLock showed before. In the old library they leaked, so
 *    that a pointer to them stayed valid.
 *  - A CLock cannot be copied, because a copy was freed twice; since C++11 it can be moved. A CRedLock cannot
 *    be copied either, because it owns connections.
 *  - Threads may share a CRedLock once its servers and settings are made, each with its own CLock.
 *  - After fork, a child may continue to use a CRedLock, but the locks that its parent took stay the parent's:
 *    in the child, Unlock returns false for them.
 */
#ifndef REDLOCK_CPP_REDLOCK_H
#define REDLOCK_CPP_REDLOCK_H

#ifdef __redlock__
#error "the old redlock-cpp/redlock.h was included before this one: see at the top of this one how to do without it"
#endif
/* The include guard of the old header: if that header comes after this one, it adds nothing. */
#define __redlock__

/* Programs got these from the old header and rely on them. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>

#include <iostream>
#include <vector>

#include <stdlib.h>
#include <string.h>

/* redlock.h writes its enum in the C++11 way, which C++98 compilers accept but warn about. */
#if __cplusplus < 201103L && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wc++11-extensions"
#include "../redlock.h"
#pragma GCC diagnostic pop
#else
#include "../redlock.h"
#endif

using namespace std;

typedef char *sds;

/* The kind of strings that sds.h means: there are two kinds. */
#if defined(__SDS_H) && !defined(SDS_TYPE_8)
#define REDLOCK_CPP_OLD_SDS 1
#else
#define REDLOCK_CPP_OLD_SDS 0
#endif

/**
 * One lock, held or not. The destructor of a CLock frees its strings and releases nothing: a lock that it held
 * stays locked until it expires, unless Unlock was called.
 *
 * The members are there to be read. Both strings belong to the CLock, which frees them. They are copies, so
 * writing to them changes no lock. They are NULL before the first call on this CLock and never after it. They
 * stay where they are until its next call, or its destruction.
 *
 * They are real sds strings. Functions that read them may be used, such as sdslen, sdsavail (0), sdscmp, and
 * sdsdup, whose copy the caller must free. Functions that free, grow or change them must not be used: sdsfree,
 * sdscat, sdsclear. They are of the kind that sds.h has had since 2015 (hiredis 0.14 and 1.x, Redis 3.2). A
 * program with the earlier sds.h, which came with the hiredis-based library, includes that file before this
 * header, in each of its sources. The strings are then of that earlier kind. If that file is included later,
 * sdslen is correct for strings below 256 bytes, which tokens are, and sdsavail is not.
 */
class CLock {
public:
    CLock()
        : m_validityTime(0), m_resource(NULL), m_val(NULL), m_ownResource(NULL), m_ownVal(NULL),
          m_lease(NULL) {}

    ~CLock() {
        Free(m_ownResource);
        Free(m_ownVal);
        RedLockLease_Free(m_lease);
    }

#if __cplusplus >= 201103L
    /** Leaves the other CLock as if it were new. */
    CLock(CLock &&other) noexcept : CLock() { Swap(other); }

    /** A lock that this CLock held stays locked until it expires. */
    CLock &operator=(CLock &&other) noexcept {
        CLock moved(static_cast<CLock &&>(other));
        Swap(moved);
        return *this;
    }

    CLock(const CLock &) = delete;
    CLock &operator=(const CLock &) = delete;
#endif

public:
    int m_validityTime; /**< remaining milliseconds when the lock was granted or continued */
    sds m_resource;     /**< the name of the locked resource: the key on the servers */
    sds m_val;          /**< the token that proves the holder: the value of the key. Keep it secret */

private:
    friend class CRedLock;

#if __cplusplus < 201103L
    CLock(const CLock &);
    CLock &operator=(const CLock &);
#endif

    bool IsEmpty() const { return RedLockLease_Token(m_lease)[0] == '\0'; }

    bool IsFor(const char *resource) const {
        return m_lease != NULL && resource != NULL &&
               strcmp(RedLockLease_Resource(m_lease), resource) == 0;
    }

    /* Drops the lease. Without memory there is no new lease, and the next call fails. */
    void Renew() {
        RedLockLease_Free(m_lease);
        m_lease = RedLockLease_New();
    }

    /* Shows the result of a call in the public members. False if there is no memory. The resource may be
     * m_resource itself. */
    bool Show(const char *resource, bool done) {
        m_validityTime = static_cast<int>(done ? RedLockLease_ValidityMs(m_lease)
                                               : RedLockLease_RemainingMs(m_lease));
        const char *name = resource != NULL ? resource : "";
        const bool resource_kept = Keep(m_resource, m_ownResource, name);
        const bool val_kept = Keep(m_val, m_ownVal, RedLockLease_Token(m_lease));
        return resource_kept && val_kept;
    }

    static bool Keep(sds &member, sds &own, const char *text) {
        const sds copy = Copy(text);
        Free(own);
        own = copy;
        member = copy != NULL ? copy : Empty();
        return copy != NULL;
    }

    /* More than the description of a string of any kind needs, in front of its bytes. */
    enum { HEAD = 16 };

    static sds Copy(const char *text) {
        const size_t length = strlen(text);
        char *const head = static_cast<char *>(malloc(HEAD + length + 1));
        if (head == NULL) {
            return NULL;
        }
        WriteHead(head + HEAD, length);
        memcpy(head + HEAD, text, length + 1);
        return head + HEAD;
    }

    static void WriteHead(sds text, size_t length) {
        memset(text - HEAD, 0, HEAD);
        const int old_length = static_cast<int>(length); /* the old kind's length, and its free room: 0 */
        if (REDLOCK_CPP_OLD_SDS || length < 0x100) {
            memcpy(text - 2 * sizeof(int), &old_length, sizeof(int));
        }
        if (!REDLOCK_CPP_OLD_SDS) {
            /* The length, the total room, and the number of bytes of each of these: 1, 2 or 4. */
            const int kind = length < 0x100 ? 1 : length < 0x10000 ? 2 : 3;
            const size_t size = static_cast<size_t>(1) << (kind - 1);
            PutNumber(text - 1 - 2 * size, length, size);
            PutNumber(text - 1 - size, length, size);
            text[-1] = static_cast<char>(kind);
        }
    }

    static void PutNumber(char *place, size_t number, size_t size) {
        const unsigned char byte = static_cast<unsigned char>(number);
        const unsigned short two = static_cast<unsigned short>(number);
        const unsigned int four = static_cast<unsigned int>(number);
        switch (size) {
        case 1: memcpy(place, &byte, 1); break;
        case 2: memcpy(place, &two, 2); break;
        default: memcpy(place, &four, 4); break;
        }
    }

    static void Free(sds own) {
        if (own != NULL) {
            free(own - HEAD);
        }
    }

    /* The target of a member when there is no more memory. */
    static sds Empty() {
        static char empty[HEAD + 1];
        WriteHead(empty + HEAD, 0);
        return empty + HEAD;
    }

    void Swap(CLock &other) {
        Swap(m_validityTime, other.m_validityTime);
        Swap(m_resource, other.m_resource);
        Swap(m_val, other.m_val);
        Swap(m_ownResource, other.m_ownResource);
        Swap(m_ownVal, other.m_ownVal);
        Swap(m_lease, other.m_lease);
    }

    template <class T>
    static void Swap(T &one, T &other) {
        T kept = one;
        one = other;
        other = kept;
    }

    sds m_ownResource;     /* the strings to free, whatever the members point to by now */
    sds m_ownVal;
    RedLockLease *m_lease; /* NULL before the first call */
};

/**
 * The lock manager: the servers and the settings. Deleting it closes its connections and releases nothing. No
 * member throws; without memory they return false.
 */
class CRedLock {
public:
    CRedLock() : m_redLock(NULL) { Initialize(); }

    virtual ~CRedLock() { RedLock_Free(m_redLock); }

#if __cplusplus >= 201103L
    CRedLock(const CRedLock &) = delete;
    CRedLock &operator=(const CRedLock &) = delete;
#endif

    /**
     * Resets the retry settings to 3 tries and 200 ms. The constructor has called it; the servers stay.
     *
     * @return true, or false if there is no memory.
     */
    bool Initialize() {
        if (m_redLock == NULL) {
            m_redLock = RedLock_New();
        }
        return RedLock_SetRetry(m_redLock, 3, 200) == REDLOCK_OK;
    }

    /**
     * Adds a server, which counts toward the quorum even if it is down. No I/O.
     *
     * @param ip   a host name or an address; or a URL as in redlock.h, with port 0.
     * @param port 1 to 65535.
     * @return true; false if the server is malformed, was added before, or a lock was already requested.
     */
    bool AddServerUrl(const char *ip, const int port) {
        return RedLock_AddServerUrl(m_redLock, ip, port) == REDLOCK_OK;
    }

    /**
     * Sets the number of tries of Lock and ContinueLock, and the pause between two tries.
     *
     * @param count total number of tries; below 1 means 1.
     * @param delay mean pause in milliseconds; the pause is random in [delay / 2, 3 * delay / 2). Below 0 means
     *              0.
     */
    void SetRetry(const int count, const int delay) {
        RedLock_SetRetry(m_redLock, count < 1 ? 1 : count, delay < 0 ? 0 : delay);
    }

    /**
     * Takes a lock.
     *
     * @param resource the name of the resource to lock; with NULL the call returns false.
     * @param ttl      milliseconds until the lock expires, at least 4.
     * @param lock     receives the lock. A lock that the CLock held before stays locked until it expires.
     * @return whether the lock was taken. If not, nothing stays locked by this call.
     */
    bool Lock(const char *resource, const int ttl, CLock &lock) {
        lock.Renew();
        const bool had = RedLock_Lock(m_redLock, resource, ttl, lock.m_lease) == REDLOCK_OK;
        const bool shown = lock.Show(resource, had);
        if (had && !shown) {
            RedLock_Unlock(m_redLock, lock.m_lease);
        }
        return had && shown;
    }

    /**
     * Takes a lock, or renews the lock that this CRedLock has continued before or that the CLock holds. A
     * program that calls it again and again in time, with the same CLock or a new one each time, keeps the lock
     * until Unlock.
     *
     * @param resource as for Lock.
     * @param ttl      as for Lock, counted from now.
     * @param lock     receives the lock. If the CLock held another resource, that stays locked until it
     *                 expires; a lock that was continued before can be continued further.
     * @return whether the lock is held. If not, a lock that was still there is left as it was.
     */
    bool ContinueLock(const char *resource, const int ttl, CLock &lock) {
        if (!lock.IsFor(resource)) {
            lock.Renew();
        }
        RedLockStatus status = RedLock_ContinueLock(m_redLock, resource, ttl, lock.m_lease);
        if (status == REDLOCK_FORKED) { /* the lease belonged to the parent: ask for a new one */
            lock.Renew();
            status = RedLock_ContinueLock(m_redLock, resource, ttl, lock.m_lease);
        }
        return lock.Show(resource, status == REDLOCK_OK) && status == REDLOCK_OK;
    }

    /**
     * Releases a lock. Any CRedLock with the same servers may do it, and a second call is harmless. The members
     * of the CLock stay as they were.
     *
     * @param lock held or not.
     * @return true when this CLock holds nothing any more: the lock was released, had ended before, or the
     *         CLock never held one. false when the release did not reach enough servers (call again, or let the
     *         lock expire) or the lock belongs to the parent process. The old library always returned true.
     */
    bool Unlock(const CLock &lock) {
        if (lock.IsEmpty()) {
            return true;
        }
        const RedLockStatus status = RedLock_Unlock(m_redLock, lock.m_lease);
        return status == REDLOCK_OK || status == REDLOCK_LOST;
    }

private:
#if __cplusplus < 201103L
    CRedLock(const CRedLock &);
    CRedLock &operator=(const CRedLock &);
#endif

    RedLock *m_redLock; /* NULL only if there was no memory: then every call on it fails */
};

#endif /* REDLOCK_CPP_REDLOCK_H */
