//! Records and verdicts for submitted calls.

use std::ptr;

use super::{IN_USE, Kept, Submitted, Told};
use crate::calls::{Call, Run};
use crate::ffi::RedLock_Unlock;
use crate::ffi::event::RedLockEvent;
use crate::ffi::lease::RedLockLease;
use crate::ffi::status::RedLockStatus::{
    self, REDLOCK_CANCELLED, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_NO_SERVERS,
    REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SHORT, REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};
use crate::handles::{Sight, judge_status, look};
use crate::protocol::command::Verb;
use crate::seen;
use crate::world::{self, Connection};

impl Run<'_> {
    /// A lease that was used for another lock no longer keeps its earlier lock.
    pub(crate) fn note_reuse(&mut self, call: &Call, status: RedLockStatus) {
        if ![REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS].contains(&status) {
            let lease = self.lease(call.lease).addr();
            self.expected.kept.retain(|it| it.lease != lease);
        }
    }

    /// A lock that was unlocked is not kept, whichever lease was used.
    pub(crate) fn note_release(&mut self, token: &str, status: RedLockStatus) {
        if ![REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS].contains(&status) {
            self.expected.kept.retain(|it| it.token != token);
        }
    }

    pub(super) fn note_kept(&mut self, call: &Call, user_data: usize, sight: Sight) {
        let lease = self.lease(call.lease).addr();
        self.expected.kept.retain(|it| it.lease != lease);
        let (manager, token) = (call.manager, sight.token);
        self.expected.kept.push(Kept { user_data, manager, lease, token, is_sure: true });
    }

    /// The lock was released because it was over before anybody could be told. So the loss may be reported,
    /// or not.
    fn note_end(&mut self, is_it: impl Fn(&Kept) -> bool) {
        let those = self.expected.kept.iter_mut().filter(|it| is_it(it));
        those.for_each(|it| it.is_sure = false);
    }
}

impl Run<'_> {
    /// A call on a lease has ended. Calls that only look are excluded.
    pub(crate) fn judge_use(&mut self, call: &Call, status: RedLockStatus, words: &str) {
        let lease = self.lease(call.lease);
        if !lease.is_null() && self.expected.is_in_call(lease) {
            assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "two calls use one lease");
            assert_eq!(words, IN_USE);
        } else {
            assert_ne!(words, IN_USE, "there is no such call");
        }
        if words.contains("ended before the program read the result") {
            let token = look(lease).token;
            self.note_end(|it| it.token == token);
        }
    }

    pub(super) fn judge_done(&mut self, slot: usize, event: &RedLockEvent) {
        seen::note(&Told::EventDone);
        let submitted = self.expected.calls.remove(&event.user_data.addr());
        let Submitted { call, lease, verb, keeps, is_cancelled } =
            submitted.expect("an event that was not to come");
        let status = event.status;
        assert_eq!((call.manager, lease), (slot, event.lease.addr()), "it is of another call");
        assert!(is_cancelled || status != REDLOCK_CANCELLED, "nobody has cancelled it");
        assert!(may_end_with(verb, status), "{verb:?} ends with {status:?}");
        if self.lease(call.lease).addr() != lease {
            // The lease was freed.
            let is_lock = verb == Verb::Acquire && status == REDLOCK_OK;
            assert!(!is_lock, "a lock that nobody has");
            return;
        }
        let sight = look(event.lease);
        judge_status(status, &sight.message);
        match (verb, status) {
            (Verb::Acquire, REDLOCK_OK) => {
                assert!(sight.is_held, "{sight:?}");
                self.judge_votes(&call, &[Verb::Acquire], &sight.token);
                if keeps {
                    self.note_kept(&call, event.user_data.addr(), sight);
                }
            }
            (Verb::Acquire, _) => assert!(!sight.is_held, "{status:?}, and held: {sight:?}"),
            // A logger may have delayed the call.
            (Verb::Extend, REDLOCK_OK) => self.judge_votes(&call, &[Verb::Extend], &sight.token),
            (Verb::Inspect, REDLOCK_OK) => self.judge_votes(&call, &[Verb::Inspect], &sight.token),
            (Verb::Release, REDLOCK_OK | REDLOCK_LOST) => {
                assert!(!sight.is_held && sight.token.is_empty(), "{sight:?}");
            }
            (Verb::Extend, REDLOCK_LOST) => self.note_end(|it| it.lease == lease),
            _ => {}
        }
        assert!(!is_in_use(event.lease), "its call is over");
    }

    pub(super) fn judge_lost(&mut self, slot: usize, event: &RedLockEvent) {
        seen::note(&Told::EventLost);
        let told = (event.user_data.addr(), slot, event.lease.addr());
        let kept = &mut self.expected.kept;
        let place = kept.iter().position(|it| (it.user_data, it.manager, it.lease) == told);
        let place = place.expect("it is not kept, or was told to be lost before");
        kept.remove(place);
        let status = event.status;
        assert!([REDLOCK_LOST, REDLOCK_UNREACHABLE].contains(&status), "{status:?}");
        assert!(event.remaining_ms >= 0);
    }

    /// These connections have locked nothing that the program does not know of. A server that has fallen
    /// behind has a later connection, and may not have received all releases.
    pub(super) fn judge_locked(&self, connections: &[bool]) {
        let is_owned = |token: &[u8]| self.expected.owned.iter().any(|it| it.as_bytes() == token);
        let leaked = world::with(|world| {
            let mut locked = world.locked();
            let server = |place: usize| world.connections[place].server;
            let has_later = |place: usize| {
                (place + 1..connections.len())
                    .any(|later| connections[later] && server(later) == server(place))
            };
            locked.retain(|(place, token)| {
                connections[*place] && !has_later(*place) && !is_owned(token)
            });
            locked
        });
        let names = leaked.iter().map(|(place, token)| (place, token.escape_ascii().to_string()));
        assert!(leaked.is_empty(), "nobody has these locks: {:?}", names.collect::<Vec<_>>());
    }
}

/// Which connections satisfy `such`, when the servers have processed everything that they were sent.
pub(super) fn are(such: impl Fn(usize, &Connection) -> bool) -> Vec<bool> {
    world::with(|world| {
        world.serve();
        let connections = world.connections.iter().enumerate();
        connections.map(|(place, it)| such(place, it)).collect()
    })
}

/// Whether an event of such a call may have this status.
fn may_end_with(verb: Verb, status: RedLockStatus) -> bool {
    let special: &[_] = match verb {
        Verb::Acquire => &[REDLOCK_TAKEN, REDLOCK_TOO_SLOW],
        Verb::Inspect => &[REDLOCK_LOST, REDLOCK_TOO_SHORT],
        _ => &[REDLOCK_LOST],
    };
    let general = [REDLOCK_OK, REDLOCK_UNREACHABLE, REDLOCK_CANCELLED];
    general.contains(&status) || special.contains(&status)
}

/// Whether a submitted call uses the lease. A call without a manager changes only the message.
pub(super) fn is_in_use(lease: *mut RedLockLease) -> bool {
    // SAFETY: the lease is alive; the manager is NULL.
    let status = unsafe { RedLock_Unlock(ptr::null_mut(), lease) };
    assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
    look(lease).message == IN_USE
}
