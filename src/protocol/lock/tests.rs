//! What a server's word means for the lock, and when.

use super::*;
use crate::protocol::lock_kind::LockKind;
use crate::protocol::servers::endpoint::Endpoint;

const TTL: i64 = 10_000;

fn at_ms(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000).plus_ms(ms)
}

fn held_lock() -> Lock {
    Lock::of_one_server(b"r", Token::from_random([0; 20]), (at_ms(0), TTL))
}

fn is_sound_after(verb: Verb, answer: Answer, ms: i64) -> bool {
    let lock = held_lock();
    // The request was sent to the server, and nothing was heard.
    *lock.soundness() = Soundness::new(1);
    lock.hear(0, (verb, 0), &answer, at_ms(ms));
    lock.soundness().is_sound(0)
}

#[test]
fn a_grant_within_the_window_is_in_time() {
    assert!(is_sound_after(Verb::Acquire, Answer::Done, 25));
    assert!(is_sound_after(Verb::AcquireFenced, Answer::Granted { number: 7 }, 25));
    assert!(!is_sound_after(Verb::AcquireFenced, Answer::Granted { number: 7 }, 26));
    assert!(!is_sound_after(Verb::Acquire, Answer::Done, 26));
    let lock = held_lock();
    let end = lock.window_end();
    for (now, is_in_time) in [(end, true), (Moment::from_nanos(end.as_nanos() + 1), false)] {
        *lock.soundness() = Soundness::new(1);
        lock.hear(0, (Verb::Acquire, 0), &Answer::Done, now);
        assert_eq!(lock.soundness().is_sound(0), is_in_time);
    }
}

/// The window is 25 ms. A key that was set later than that has longer to live.
#[test]
fn a_late_heard_grant_is_judged_by_the_age_of_the_key() {
    let extended = |left_ms, ms| is_sound_after(Verb::Extend, Answer::Extended { left_ms }, ms);
    // After 100 ms a key that was set at once has 9,900 ms left; the server may be fast by 1 ms.
    assert!(extended(TTL - 100, 100));
    assert!(extended(TTL - 100 + 23, 100));
    assert!(!extended(TTL - 100 + 24, 100));
    assert!(!extended(TTL, 100));
    // A key that is there within the window was set within it.
    assert!(extended(TTL, 0) && extended(TTL, 25) && extended(3 * TTL, 1));
    // Somebody has extended the key, or has taken its end away.
    assert!(!extended(3 * TTL, 26) && !extended(-1, 26) && !extended(i64::MIN, 26));
    let found = |value: &[u8], left_ms, ms| {
        let value = value.to_vec();
        is_sound_after(Verb::Inspect, Answer::Found { value, left_ms }, ms)
    };
    let token = held_lock().token;
    assert!(found(token.as_bytes(), TTL - 100, 100));
    assert!(!found(token.as_bytes(), TTL, 100));
    assert!(!found(b"another", TTL - 100, 100));
}

#[test]
fn a_failed_answer_changes_nothing() {
    let lock = held_lock();
    let failed = Answer::Failed(crate::protocol::failure::Failure::ProtocolError);
    for verb in [Verb::Extend, Verb::Inspect, Verb::Release] {
        lock.hear(0, (verb, 0), &failed, at_ms(1));
    }
    assert!(lock.soundness().is_sound(0));
    lock.hear(0, (Verb::Inspect, 0), &Answer::Absent, at_ms(1));
    assert!(!lock.soundness().is_sound(0));
}

impl Lock {
    /// A lock that was taken on one server.
    pub(crate) fn of_one_server_as(
        resource: &[u8],
        is_shared: bool,
        token: Token,
        (at, ttl_ms): (Moment, i64),
    ) -> Self {
        let endpoint = Endpoint::parse("127.0.0.1", 1).unwrap();
        let asked = Asked { at, ttl_ms, window_ms: 25, drift: Drift::DEFAULT };
        let mut target = Target::from(Arc::<[u8]>::from(resource));
        if is_shared {
            target.kind = LockKind::Shared;
        }
        let lock = Self::new(target, token, asked, Roster::new(vec![endpoint]));
        lock.take(ServerSet::first(1), ServerSet::first(1));
        lock
    }
}

/// The readers that a server had when it answered a later extension are others.
#[test]
fn a_lock_is_shared_from_its_first_downgrade() {
    let roster = Roster::new(vec![Endpoint::parse("127.0.0.1", 1).unwrap()]);
    let view = View::new(&Arc::new(held_lock()), &roster).expect("the same server");
    let first = view.begin_downgrade();
    let between = view.begin_round();
    let second = view.begin_downgrade();
    assert!(first < between && between < second);
    let was_exclusive = [0, first, between].map(|it| view.held_lock().was_exclusive_in(it));
    assert_eq!(was_exclusive, [true, false, false]);
}

/// The manager names the servers in another order than the one that took the lock.
#[test]
fn news_reaches_the_right_server_of_another_manager() {
    let roster = |ports: [i32; 3]| {
        Roster::new(ports.map(|port| Endpoint::parse("127.0.0.1", port).unwrap()).into())
    };
    let asked = Asked { at: at_ms(0), ttl_ms: TTL, window_ms: 25, drift: Drift::DEFAULT };
    let target = Target::from(Arc::<[u8]>::from(&b"r"[..]));
    let lock = Lock::new(target, Token::from_random([0; 20]), asked, roster([1, 2, 3]));
    lock.take([0, 1].into_iter().collect(), ServerSet::first(3));
    let view = View::new(&Arc::new(lock), &roster([3, 1, 2])).expect("the same servers");
    let observer = view.observer();
    observer.hear(0, (Verb::Extend, 0), &Answer::Absent, at_ms(1));
    assert!(view.begin_repairs().1.is_empty(), "the acquire may be carried out still");
    observer.hear_end(0, 0);
    assert_eq!(view.begin_repairs().1, ServerSet::first(1));
}
