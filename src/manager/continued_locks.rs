//! The locks that ContinueLock remembers: the lock of each continued resource, so that a fresh lease renews
//! a lock that an earlier lease took.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::lock::Lock;
use crate::protocol::moment::Moment;
use crate::protocol::room::Room;

#[derive(Default)]
pub(crate) struct ContinuedLocks {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    locks: HashMap<Arc<[u8]>, Arc<Lock>>,
    /// The same locks, each once, and some forgotten ones, in the order in which they are checked.
    turns: VecDeque<Arc<Lock>>,
    /// How many locks were checked in all.
    #[cfg(test)]
    looked_at: usize,
}

/// How many locks are checked for each lock that is remembered, to forget those that have ended. More than one,
/// because otherwise their number would keep growing. Only a few, because thousands of locks may be held.
const LOOKED_AT: usize = 2;

impl ContinuedLocks {
    /// The lock of a resource, if it is still held.
    pub(crate) fn find(&self, resource: &[u8], now: Moment) -> Option<Arc<Lock>> {
        self.kept().locks.get(resource).filter(|lock| lock.is_held(now)).cloned()
    }

    /// Remembers a lock, and forgets some of the locks that have ended.
    pub(crate) fn remember(&self, lock: &Arc<Lock>, now: Moment) {
        let mut kept = self.kept();
        let before = kept.locks.insert(Arc::clone(lock.resource()), Arc::clone(lock));
        if before.is_none_or(|before| !Arc::ptr_eq(&before, lock)) {
            kept.turns.push_back(Arc::clone(lock));
        }
        kept.forget_ended(now);
    }

    /// Forgets this lock, but not a later one of the same resource.
    pub(crate) fn forget(&self, lock: &Lock) {
        let mut kept = self.kept();
        if kept.locks.get(lock.resource()).is_some_and(|known| known.token() == lock.token()) {
            kept.locks.remove(lock.resource());
        }
    }

    /// Whether no thread is using these records at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.kept.try_lock().is_ok()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn forget_ended(&mut self, now: Moment) {
        for _ in 0..LOOKED_AT {
            let Some(lock) = self.turns.pop_front() else { return };
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
            if !self.locks.get(lock.resource()).is_some_and(|known| Arc::ptr_eq(known, &lock)) {
                continue;
            }
            if lock.is_held(now) {
                self.turns.push_back(lock);
            } else {
                self.locks.remove(lock.resource());
            }
        }
        self.turns.give_back();
        self.locks.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::lock::Phase;
    use crate::protocol::token::Token;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    fn held_lock(number: usize, ttl_ms: i64) -> Arc<Lock> {
        let (resource, token) = (number.to_string().into_bytes(), Token::from_random([7; 20]));
        Arc::new(Lock::of_one_server(&resource, token, (NOW, ttl_ms)))
    }

    impl ContinuedLocks {
        fn sizes(&self) -> [usize; 2] {
            let kept = self.kept();
            [kept.locks.len(), kept.turns.len()]
        }
    }

    #[test]
    fn remembering_a_lock_stays_cheap_with_many_locks() {
        const HELD: usize = 40_000;
        let continued = ContinuedLocks::default();
        let locks: Vec<_> = (0..HELD).map(|it| held_lock(it, 10_000)).collect();
        for _ in 0..2 {
            locks.iter().for_each(|it| continued.remember(it, NOW));
        }
        assert!(locks.iter().all(|it| continued.find(it.resource(), NOW).is_some()));
        let looked_at = continued.kept().looked_at;
        assert!(looked_at <= LOOKED_AT * 2 * HELD, "{looked_at}");
    }

    #[test]
    fn ended_locks_are_forgotten() {
        let continued = ContinuedLocks::default();
        let long = held_lock(0, 1_000_000);
        continued.remember(&long, NOW);
        let remember = |nth: usize, now: Moment| {
            let lock = held_lock(nth, 10_000);
            continued.remember(&lock, now);
            lock
        };
        // Each lock ends before the next one is remembered: by itself, or because it is released.
        for nth in 1..2_000 {
            let lock = remember(nth, NOW);
            lock.pass_to(Phase::Over);
            if nth % 2 == 0 {
                continued.forget(&lock);
            }
            assert!(continued.sizes().iter().all(|it| *it < 8), "{:?}", continued.sizes());
        }
        assert!(continued.find(b"0", NOW).is_some());
        // First one lock again and again, then one resource.
        (0..1_000).for_each(|_| continued.remember(&long, NOW));
        assert!(continued.sizes().iter().all(|it| *it < 8), "{:?}", continued.sizes());
        for _ in 0..1_000 {
            continued.forget(&remember(1, NOW));
            assert!(continued.sizes().iter().all(|it| *it < 8), "{:?}", continued.sizes());
        }
        (0..1_000).for_each(|_| drop(remember(1, NOW)));
        assert!(continued.sizes().iter().all(|it| *it < 8), "{:?}", continued.sizes());
        // When many locks were held at one time and have ended, no room for them is left either.
        (2_000..12_000).for_each(|it| drop(remember(it, NOW)));
        assert!(continued.sizes().iter().all(|it| *it > 10_000), "{:?}", continued.sizes());
        (0..20_000).for_each(|it| drop(remember(20_000 + it, NOW.plus_ms(10_000))));
        let kept = continued.kept();
        let room = [kept.locks.capacity(), kept.turns.capacity()];
        assert!(room.iter().all(|it| *it <= 128), "{room:?}");
    }

    #[test]
    fn an_expired_lock_is_not_continued() {
        let continued = ContinuedLocks::default();
        let lock = held_lock(0, 10_000);
        continued.remember(&lock, NOW);
        let end = lock.valid_until();
        assert!(continued.find(b"0", end.plus_ms(-1)).is_some());
        assert!(continued.find(b"0", end).is_none());
    }

    #[test]
    fn forgetting_an_old_lock_keeps_the_later_one() {
        let continued = ContinuedLocks::default();
        let (early, late) = (held_lock(0, 10_000), {
            let token = Token::from_random([8; 20]);
            Arc::new(Lock::of_one_server(b"0", token, (NOW, 10_000)))
        });
        continued.remember(&early, NOW);
        continued.remember(&late, NOW);
        continued.forget(&early);
        assert!(continued.find(b"0", NOW).is_some());
        continued.forget(&late);
        assert!(continued.find(b"0", NOW).is_none());
    }
}
