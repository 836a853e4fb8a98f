/*
 * CRedLock and CLock over redlock.h, for programs written for the hiredis-based library of that
 * name: they compile with nothing changed but the include directory and the link line (-lredlock).
 * C++98 and later; header only. New programs take ../redlock.hpp instead.
 *
 *     CRedLock * dlm = new CRedLock();
 *     dlm->AddServerUrl("127.0.0.1", 5005);
 *     dlm->AddServerUrl("127.0.0.1", 5006);
 *     dlm->AddServerUrl("127.0.0.1", 5007);
 *     CLock my_lock;
 *     if (dlm->Lock("foo", 10000, my_lock)) { ... dlm->Unlock(my_lock); }
 *
 * Key and value on the servers are the same as ever, so old and new processes exclude each other
 * and a fleet can move one process at a time.
 *
 * Deliberately different from that library:
 *  - Nothing is printed, and the process is never ended.
 *  - The quorum counts the servers added, not those that were up when they were: with one of three
 *    down, two must grant. One that was down is used as soon as it is back.
 *  - AddServerUrl makes no connection. The list is closed by the first Lock or ContinueLock, and
 *    the same server does not count twice: AddServerUrl answers false then.
 *  - Times are measured in milliseconds, on a clock that counts suspend. All servers are asked at
 *    once, each for a limited time. There is no pause after the last try.
 *  - ContinueLock keeps the token for as long as it keeps the lock, and renews without a gap; one
 *    that fails leaves the old lock alone, which lasts until its old end. Each resource is
 *    continued on its own. One that finds its lock gone before its time answers false once, so
 *    that the gap is noticed; the next call takes it anew.
 *  - m_val is empty, not the token of a failed try, when the lock is not held; m_validityTime is 0
 *    then. A lock that a failed ContinueLock left alone shows its token and the time left of it.
 *  - A CLock cannot be copied (a copy was freed twice); since C++11 it can be moved. A CRedLock
 *    cannot be copied either, for it owns connections.
 *  - Unlock may answer false; see there.
 *  - Threads may share a CRedLock once its servers and settings are made, each with its own CLock.
 *  - After fork, a child may go on with a CRedLock, but the locks its parent took stay the
 *    parent's: Unlock answers false for them there.
 */
#ifndef REDLOCK_CPP_REDLOCK_H
#define REDLOCK_CPP_REDLOCK_H

/* Programs got these from the old header and count on them. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>

#include <iostream>
#include <vector>

#include <stdlib.h>
#include <string.h>

/* redlock.h writes its enum the C++11 way, which C++98 compilers know but remark upon. */
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

/**
 * One lock, held or not. A CLock that goes away frees its strings and releases nothing: what it
 * held stays locked until it expires, unless Unlock was called.
 *
 * The members are there to be read. Both strings belong to the CLock, which frees them; they are
 * copies, so that writing to them changes no lock. They are NULL before the first call on this
 * CLock and never after it.
 */
class CLock {
public:
    CLock() : m_validityTime(0), m_resource(NULL), m_val(NULL), m_lease(NULL) {}

    ~CLock() {
        Free(m_resource);
        Free(m_val);
        RedLockLease_Free(m_lease);
    }

#if __cplusplus >= 201103L
    /** Leaves the other one as if it were new. */
    CLock(CLock &&other) noexcept : CLock() { Swap(other); }

    /** What this one held stays locked until it expires. */
    CLock &operator=(CLock &&other) noexcept {
        CLock moved(static_cast<CLock &&>(other));
        Swap(moved);
        return *this;
    }

    CLock(const CLock &) = delete;
    CLock &operator=(const CLock &) = delete;
#endif

public:
    int m_validityTime; /**< milliseconds that were left of it when it was granted or continued */
    sds m_resource;     /**< the name of what is locked: the key on the servers */
    sds m_val;          /**< the token that proves the holder: the value there. Keep it secret */

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

    /* Lets go of what it held. Without memory there is no lease, and the next call fails. */
    void Renew() {
        RedLockLease_Free(m_lease);
        m_lease = RedLockLease_New();
    }

    /* Shows in the public members what a call has brought. False if there is no memory. The
     * resource may well be m_resource. */
    bool Show(const char *resource, bool done) {
        m_validityTime = static_cast<int>(done ? RedLockLease_ValidityMs(m_lease)
                                               : RedLockLease_RemainingMs(m_lease));
        const bool resource_kept = Keep(m_resource, resource != NULL ? resource : "");
        const bool val_kept = Keep(m_val, RedLockLease_Token(m_lease));
        return resource_kept && val_kept;
    }

    static bool Keep(sds &member, const char *text) {
        const size_t size = strlen(text) + 1;
        sds copy = static_cast<sds>(malloc(size));
        if (copy != NULL) {
            memcpy(copy, text, size);
        }
        Free(member);
        member = copy != NULL ? copy : Empty();
        return copy != NULL;
    }

    static void Free(sds member) {
        if (member != Empty()) {
            free(member);
        }
    }

    /* What a member points to when there is no memory for more. */
    static sds Empty() {
        static char empty[1] = {'\0'};
        return empty;
    }

    void Swap(CLock &other) {
        Swap(m_validityTime, other.m_validityTime);
        Swap(m_resource, other.m_resource);
        Swap(m_val, other.m_val);
        Swap(m_lease, other.m_lease);
    }

    template <class T>
    static void Swap(T &one, T &other) {
        T kept = one;
        one = other;
        other = kept;
    }

    RedLockLease *m_lease; /* NULL before the first call */
};

/**
 * The lock manager: the servers and the settings. Deleting it closes its connections and releases
 * nothing. No member throws; where memory is short they answer false.
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
     * Puts the retry settings back to 3 tries and 200 ms. The constructor has called it; the
     * servers stay.
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
     * Adds a server, which counts toward the quorum whether it is up or not. No I/O.
     *
     * @param ip   a host name or an address; or a URL as in redlock.h, with port 0.
     * @param port 1 to 65535.
     * @return true; false if it is malformed, was added before, or a lock was asked for already.
     */
    bool AddServerUrl(const char *ip, const int port) {
        return RedLock_AddServerUrl(m_redLock, ip, port) == REDLOCK_OK;
    }

    /**
     * Sets how often Lock and ContinueLock try, and how long they pause between two tries.
     *
     * @param count tries in all; below 1 means 1.
     * @param delay mean pause in milliseconds; the pause is random in [delay / 2, 3 * delay / 2).
     *              Below 0 means 0.
     */
    void SetRetry(const int count, const int delay) {
        RedLock_SetRetry(m_redLock, count < 1 ? 1 : count, delay < 0 ? 0 : delay);
    }

    /**
     * Takes a lock.
     *
     * @param resource the name of what to lock; NULL answers false.
     * @param ttl      milliseconds until it expires, at least 4.
     * @param lock     receives it. What a CLock held before stays locked until it expires.
     * @return whether it was had. If not, nothing stays locked by this call.
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
     * Takes a lock, or renews the one that this CRedLock has continued before or that the CLock
     * holds: called again and again in time, with the same CLock or a fresh one each time, it
     * keeps the lock until Unlock.
     *
     * @param resource as for Lock.
     * @param ttl      as for Lock, counted from now.
     * @param lock     receives it. If it held another resource, that stays locked until it
     *                 expires; one that was continued before can be continued further.
     * @return whether it is held. If not, a lock that was still there is left as it was.
     */
    bool ContinueLock(const char *resource, const int ttl, CLock &lock) {
        if (!lock.IsFor(resource)) {
            lock.Renew();
        }
        RedLockStatus status = RedLock_ContinueLock(m_redLock, resource, ttl, lock.m_lease);
        if (status == REDLOCK_FORKED) { /* the lease was the parent's: ask for one of our own */
            lock.Renew();
            status = RedLock_ContinueLock(m_redLock, resource, ttl, lock.m_lease);
        }
        return lock.Show(resource, status == REDLOCK_OK) && status == REDLOCK_OK;
    }

    /**
     * Releases a lock. Any CRedLock with the same servers may do it, and doing it twice is
     * harmless. What the members of the CLock say is left as it was.
     *
     * @param lock held or not.
     * @return true when this CLock holds nothing any more: it was released, had ended before, or
     *         never held anything. false when too few servers could be told (call again, or let it
     *         expire) or it is the parent process's. The old library always answered true.
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

    RedLock *m_redLock; /* NULL only if there was no memory: every call on it fails then */
};

#endif /* REDLOCK_CPP_REDLOCK_H */
