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
 * The compiler has to find this header, and not the old one. A program that says
 * #include "redlock-cpp/redlock.h" finds the old one if a directory redlock-cpp lies beside the source,
 * as it does in that library's own tree, whatever -I says; the linker then misses CRedLock::CRedLock()
 * and all that follows. Do one of these:
 *  - take the directories redlock-cpp and hiredis out of the tree;
 *  - leave them, and compile with -include $PREFIX/include/redlock-cpp/redlock.h: the old header then
 *    adds nothing;
 *  - write #include <redlock-cpp/redlock.h>, and put -I$PREFIX/include before -I. and its like.
 * Take redlock.o, sds.o, -lhiredis and -L./bin off the link line: the old library is called libredlock.a,
 * too.
 *
 * Deliberately different from that library, as it last was (2018):
 *  - Nothing is printed, and the process is never ended.
 *  - Neither hiredis.h nor sds.h is included, nor any function of theirs linked. m_resource and m_val
 *    are strings of sds all the same; see CLock.
 *  - The quorum is more than half of the servers added, up or not. So it was there until 2018; since
 *    then, and with the hiredis of its own, a server that is down when it is added is left out, and the
 *    quorum is more than half of the others: with one of three up, that one granted all locks.
 *  - A server that was down when it was added, or whose connection was lost, is used as soon as it is
 *    back. There it was lost for as long as the CRedLock lived.
 *  - AddServerUrl makes no connection. The list is closed by the first Lock or ContinueLock, and
 *    the same server does not count twice: AddServerUrl answers false then, and for what can be no
 *    server.
 *  - Without servers nothing is locked: Lock and ContinueLock answer false. There they answered true.
 *  - Initialize, called again, leaves the quorum as it is. There any lock was granted after it, until
 *    a server was added.
 *  - SetRetry takes a delay of 0. There it ended the process.
 *  - An empty resource is none: Lock and ContinueLock answer false. There it was a key without a name.
 *  - Times are measured in milliseconds, on a clock that counts suspend, so a TTL of 3 is too short. All
 *    servers are asked at once, each for a limited time. There is no pause after the last try.
 *  - ContinueLock keeps the token for as long as it keeps the lock. There each call made a new one. So
 *    after ContinueLock("x", 10000, a) and ContinueLock("x", 10000, b), a and b hold the same lock, and
 *    Unlock(a) RELEASES it for both. There Unlock(a) did nothing any more.
 *  - ContinueLock never shortens a lock: with a TTL that is shorter than what is left it answers true,
 *    and the lock stays until its old end, which m_validityTime tells. There it was cut.
 *  - A ContinueLock that fails leaves the old lock alone, which lasts until its old end. There it
 *    released it, where it could.
 *  - Each resource is continued on its own. There, whoever continued a second one was refused the first
 *    until it had expired.
 *  - ContinueLock with a CLock that Lock has filled renews that lock. There it was refused until that
 *    had expired.
 *  - A ContinueLock that finds its lock gone before its time answers false once, so that the gap is
 *    noticed; the next call takes it anew. There it was taken anew at once.
 *  - m_val is empty, not the token of a failed try, when a Lock or ContinueLock ends without the lock;
 *    m_validityTime is 0 then. After an Unlock both stay as they were until the next of these calls. A lock that a failed ContinueLock left alone shows its token and the time left of it.
 *  - What Unlock releases is what the call before has locked. The members are only shown: whoever
 *    writes another token into m_val, or another name into m_resource, changes nothing by it, and a
 *    CLock whose members were filled by hand holds nothing. There Unlock deleted by what it found in them.
 *  - Unlock may answer false; see there.
 *  - Lock and ContinueLock free the strings that the CLock has shown before. There they leaked, so that a
 *    pointer to them stayed good.
 *  - A CLock cannot be copied (a copy was freed twice); since C++11 it can be moved. A CRedLock
 *    cannot be copied either, for it owns connections.
 *  - Threads may share a CRedLock once its servers and settings are made, each with its own CLock.
 *  - After fork, a child may go on with a CRedLock, but the locks its parent took stay the
 *    parent's: Unlock answers false for them there.
 */
#ifndef REDLOCK_CPP_REDLOCK_H
#define REDLOCK_CPP_REDLOCK_H

#ifdef __redlock__
#error "the old redlock-cpp/redlock.h was included before this one: see at the top of this one how to do without it"
#endif
/* The guard of the old header: if it is found after this one, it adds nothing. */
#define __redlock__

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

/* Which strings sds.h means: there are two kinds. */
#if defined(__SDS_H) && !defined(SDS_TYPE_8)
#define REDLOCK_CPP_OLD_SDS 1
#else
#define REDLOCK_CPP_OLD_SDS 0
#endif

/**
 * One lock, held or not. A CLock that goes away frees its strings and releases nothing: what it
 * held stays locked until it expires, unless Unlock was called.
 *
 * The members are there to be read. Both strings belong to the CLock, which frees them; they are
 * copies, so that writing to them changes no lock. They are NULL before the first call on this
 * CLock and never after it, and stay where they are until its next call, or its end.
 *
 * They are true strings of sds: whatever reads them may be used, such as sdslen, sdsavail (0), sdscmp,
 * and sdsdup, whose copy is the caller's to free. Whatever frees, grows or changes them may not: sdsfree,
 * sdscat, sdsclear. They are of the kind that sds.h has had since 2015 (hiredis 0.14 and 1.x, Redis 3.2). A
 * program with the sds.h of before, which the hiredis-based library brought along, includes that before
 * this header, in each of its sources; then they are of that kind. Where it comes later, sdslen is right
 * for strings below 256 bytes, which tokens are, and sdsavail is not.
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

    /* More than what is told of a string of any kind takes, in front of its bytes. */
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
        const int old_length = static_cast<int>(length); /* then the room that is left: 0 */
        if (REDLOCK_CPP_OLD_SDS || length < 0x100) {
            memcpy(text - 2 * sizeof(int), &old_length, sizeof(int));
        }
        if (!REDLOCK_CPP_OLD_SDS) {
            /* The length, the room for all, and of how many bytes these are: 1, 2 or 4. */
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

    /* What a member points to when there is no memory for more. */
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

    sds m_ownResource;     /* what is to be freed, whatever the members are by now */
    sds m_ownVal;
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
