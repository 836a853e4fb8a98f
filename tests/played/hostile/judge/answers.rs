//! The answers to requests, derived from the replies.

use super::Asked;
use crate::protocol::command::{Answer, NthKey, Slots, Verb};
use crate::protocol::failure::Failure;
use crate::resp::Reply;

/// The answer to a request; `None` if these are no replies to it.
pub(super) fn answer(asked: &Asked, replies: &[Reply]) -> Option<Answer> {
    let verb = asked.verb;
    if matches!(verb, Verb::Move | Verb::ReleaseRest | Verb::ReleaseRestAndWake) {
        return answer_of_permits(asked, &replies[0]);
    }
    if asked.is_of_several {
        return answer_of_several(asked, &replies[0]);
    }
    if matches!(verb, Verb::JoinWaitlist | Verb::Leave) {
        return answer_of_waiting(asked, &replies[0]);
    }
    if asked.is_of_reader && matches!(verb, Verb::Acquire | Verb::Extend | Verb::Inspect) {
        return answer_of_reader(asked, &replies[0]);
    }
    let (verb, wakes) = match verb {
        Verb::ReleaseAndWake => (Verb::Release, true),
        verb => (verb, false),
    };
    let refused = Some(Answer::Failed(Failure::ProtocolError));
    if verb == Verb::AcquireAgain {
        let [set, readers, left] = replies else { return None };
        let readers = match readers {
            Reply::Int(readers) => *readers,
            Reply::Error(..) => 0,
            _ => return None,
        };
        let first = Asked { verb: Verb::Acquire, ..asked.clone() };
        let plain = answer(&first, &[set.clone(), left.clone()])?;
        return Some(match plain {
            Answer::Foreign { left_ms } if readers > 0 => Answer::Shared { readers, left_ms },
            plain => plain,
        });
    }
    match (verb, &replies[0]) {
        (Verb::Release, reply) if is_of_another_type(reply) => return Some(Answer::Absent),
        (Verb::Extend, reply) if is_of_another_type(reply) => {
            return Some(Answer::Foreign { left_ms: None });
        }
        (Verb::Inspect, reply) if is_of_another_type(reply) => {}
        (_, Reply::Error(..)) => return refused,
        (Verb::Release, Reply::Int(1)) => return Some(Answer::Done),
        (Verb::Release, Reply::Int(0)) => return Some(Answer::Absent),
        (Verb::Release, Reply::Int(2)) if wakes => return Some(Answer::Woke),
        (Verb::Release, _) => return None,
        (Verb::Extend, Reply::Array(said)) => {
            return match said[..] {
                [Reply::Int(1), Reply::Int(left_ms)] => Some(Answer::Extended { left_ms }),
                [Reply::Int(0), Reply::Int(_)] => Some(Answer::Absent),
                [Reply::Int(2), Reply::Int(left_ms)] => {
                    Some(Answer::Foreign { left_ms: Some(left_ms) })
                }
                _ => None,
            };
        }
        (Verb::AcquireFenced, Reply::Array(said)) => {
            return match said[..] {
                [Reply::Int(0), Reply::Int(-2)] => Some(Answer::Foreign { left_ms: None }),
                [Reply::Int(0), Reply::Int(left_ms)] => {
                    Some(Answer::Foreign { left_ms: Some(left_ms) })
                }
                [Reply::Int(3), Reply::Int(left_ms)] => {
                    Some(Answer::Shared { readers: 0, left_ms: Some(left_ms) })
                }
                [Reply::Int(what), Reply::Int(number)] => answer_of_draw(what, number),
                _ => None,
            };
        }
        (Verb::RaiseFence, Reply::Int(1)) => return Some(Answer::Done),
        (Verb::RaiseFence, Reply::Int(0)) => return Some(Answer::Absent),
        (Verb::RaiseFence, Reply::Int(2 | 3)) => return refused,
        // The note of these servers is not read, so nothing is worth anything that they know of numbers.
        (Verb::ReadFences, Reply::Array(said)) => {
            return match said[..] {
                [Reply::Int(1), Reply::Int(0..), Reply::Int(0), Reply::Int(0)] => refused,
                [Reply::Int(2), Reply::Int(0..), Reply::Int(0), Reply::Int(_)] => refused,
                [Reply::Int(0), Reply::Int(0..), Reply::Int(0..), Reply::Int(_)] => refused,
                [Reply::Int(3), Reply::Int(0), Reply::Int(0), Reply::Int(0)] => refused,
                _ => None,
            };
        }
        (Verb::Extend | Verb::AcquireFenced | Verb::RaiseFence | Verb::ReadFences, _) => {
            return None;
        }
        _ => {}
    }
    let left_ms = match replies.get(1) {
        None | Some(Reply::Int(-2) | Reply::Error(..)) => None,
        Some(Reply::Int(left_ms)) => Some(*left_ms),
        Some(_) => return None,
    };
    match (verb, &replies[0]) {
        (Verb::Acquire, reply) if is_ok(reply) => Some(Answer::Done),
        (Verb::Acquire, Reply::Nil) => Some(Answer::Foreign { left_ms }),
        // The key has ended in between.
        (Verb::Inspect, Reply::Bulk(_) | Reply::Error(..))
            if matches!(replies[1], Reply::Int(-2)) =>
        {
            Some(Answer::Absent)
        }
        (Verb::Inspect, Reply::Error(..)) => {
            Some(Answer::Found { value: Vec::new(), left_ms: left_ms.unwrap_or(0) })
        }
        (Verb::Inspect, Reply::Bulk(value)) => Some(match left_ms {
            None | Some(0..) if value.is_empty() => Answer::Absent,
            _ => Answer::Found { value: value.clone(), left_ms: left_ms.unwrap_or(0) },
        }),
        _ => None,
    }
}

/// The answer to a request for a lock that a server has set, if it is to draw a number. A server that has lost its
/// numbers has no vote.
fn answer_of_draw(what: i64, number: i64) -> Option<Answer> {
    match (what, number) {
        (-5, 1..) => Some(Answer::Granted { number }),
        (-3, 1..) => Some(Answer::GrantedByClock { number }),
        (-2, 0..) | (-1 | -4, 0) => Some(Answer::Failed(Failure::ProtocolError)),
        _ => None,
    }
}

/// The answer to a request about a semaphore of two permits; `None` if this is no reply to it.
fn answer_of_permits(asked: &Asked, reply: &Reply) -> Option<Answer> {
    match (asked.verb, reply) {
        (_, Reply::Error(..)) => Some(Answer::Failed(Failure::ProtocolError)),
        (Verb::ReleaseRestAndWake, Reply::Int(2)) => Some(Answer::Woke),
        (Verb::ReleaseRest | Verb::ReleaseRestAndWake, Reply::Int(0)) => Some(Answer::Absent),
        (Verb::ReleaseRest | Verb::ReleaseRestAndWake, Reply::Int(1..)) => Some(Answer::Done),
        (Verb::Move, Reply::Array(said)) => {
            let [Reply::Int(got), Reply::Bulk(map), Reply::Int(left_ms)] = &said[..] else {
                return None;
            };
            let is_map = map.len() == 2 && map.iter().all(|it| b"01".contains(it));
            let got = u16::try_from(*got).ok().filter(|got| is_map && *got <= 2)?;
            let taken = (0..2).filter(|slot| map[usize::from(*slot)] == b'1').collect();
            let got = got.checked_sub(1);
            let has_it = got.is_none_or(|slot| map[usize::from(slot)] == b'1');
            has_it.then_some(Answer::Slots(Slots { got, taken, left_ms: *left_ms }))
        }
        _ => None,
    }
}

/// The answer to a request about two resources; `None` if this is no reply to it.
fn answer_of_several(asked: &Asked, reply: &Reply) -> Option<Answer> {
    let place = |nth: i64| u16::try_from(nth).ok().filter(|nth| [1, 2].contains(nth));
    let place = |nth: i64| place(nth).map(|nth| NthKey { nth, of: 2 });
    let blocked = |nth: i64, left_ms: i64| {
        let left_ms = (left_ms != -2).then_some(left_ms);
        place(nth).map(|place| Answer::Blocked { place, left_ms })
    };
    let numbers: Vec<i64> = match reply {
        Reply::Error(..) => return Some(Answer::Failed(Failure::ProtocolError)),
        Reply::Int(number)
            if matches!(asked.verb, Verb::Release | Verb::RaiseFence | Verb::ReleaseAndWake) =>
        {
            return match (asked.verb, number) {
                (Verb::ReleaseAndWake, 2) => Some(Answer::Done),
                (Verb::ReleaseAndWake, 0 | 1) => Some(Answer::Absent),
                (Verb::Release, 2) | (Verb::RaiseFence, 1) => Some(Answer::Done),
                (Verb::Release, 0 | 1) | (Verb::RaiseFence, 0) => Some(Answer::Absent),
                (Verb::RaiseFence, 2 | 3) => Some(Answer::Failed(Failure::ProtocolError)),
                _ => None,
            };
        }
        Reply::Array(said) => {
            let number = |it: &Reply| if let Reply::Int(it) = it { Some(*it) } else { None };
            said.iter().map(number).collect::<Option<_>>()?
        }
        _ => return None,
    };
    match (asked.verb, &numbers[..]) {
        (Verb::ReleaseAndWake, [2, 1]) => Some(Answer::Done),
        (Verb::ReleaseAndWake, [2, 2]) => Some(Answer::Woke),
        (Verb::ReleaseAndWake, [0 | 1, 1 | 2]) => Some(Answer::Absent),
        (Verb::JoinWaitlist, [1, _, _, _]) => Some(Answer::Free),
        (Verb::JoinWaitlist, &[what @ (0 | 2), left_ms, rank, nth]) => {
            let rank = if rank == -1 { None } else { Some(u32::try_from(rank).ok()?) };
            let (left_ms, is_shared) = ((left_ms != -2).then_some(left_ms), what == 2);
            place(nth).map(|place| Answer::EnrolledForOne { place, left_ms, rank, is_shared })
        }
        (Verb::Acquire, [0, 0]) => Some(Answer::Done),
        (Verb::AcquireFenced, &[what, number]) if what < 0 => answer_of_draw(what, number),
        (Verb::Acquire | Verb::AcquireFenced, [0, -2]) => Some(Answer::Foreign { left_ms: None }),
        (Verb::Acquire | Verb::AcquireFenced, &[nth, left_ms]) => blocked(nth, left_ms),
        (Verb::Extend | Verb::Inspect, &[0, _, nth]) => {
            place(nth).map(|place| Answer::Lacking { place })
        }
        (Verb::Extend, &[1, left_ms, 0]) => Some(Answer::Extended { left_ms }),
        (Verb::Inspect, &[1, left_ms, 0]) => {
            Some(Answer::Found { value: asked.token.clone(), left_ms })
        }
        (Verb::Extend | Verb::Inspect, &[2, left_ms, nth]) => blocked(nth, left_ms),
        _ => None,
    }
}

/// The answer to a reader's request; `None` if this is no reply to it.
fn answer_of_reader(asked: &Asked, reply: &Reply) -> Option<Answer> {
    let said = match reply {
        reply if asked.verb == Verb::Extend && is_of_another_type(reply) => {
            return Some(Answer::Foreign { left_ms: None });
        }
        Reply::Error(..) => return Some(Answer::Failed(Failure::ProtocolError)),
        Reply::Int(1) if asked.verb == Verb::Acquire => return Some(Answer::Done),
        Reply::Array(said) => &said[..],
        _ => return None,
    };
    let found = |value: &[u8], left_ms| Answer::Found { value: value.to_vec(), left_ms };
    Some(match (asked.verb, said) {
        (Verb::Acquire, [Reply::Int(0), Reply::Int(-2)]) => Answer::Foreign { left_ms: None },
        (Verb::Acquire, &[Reply::Int(2), Reply::Int(left_ms)]) => Answer::WriterWaits { left_ms },
        (Verb::Acquire | Verb::Extend, [Reply::Int(3), Reply::Int(_)]) => {
            Answer::Failed(Failure::ProtocolError)
        }
        (Verb::Extend, [Reply::Int(0), Reply::Int(_)]) => Answer::Absent,
        (Verb::Extend, &[Reply::Int(1), Reply::Int(left_ms)]) => Answer::Extended { left_ms },
        (Verb::Acquire, &[Reply::Int(0), Reply::Int(left_ms)])
        | (Verb::Extend, &[Reply::Int(2), Reply::Int(left_ms)]) => {
            Answer::Foreign { left_ms: Some(left_ms) }
        }
        (Verb::Inspect, [Reply::Bulk(value), Reply::Int(-2)]) if value.is_empty() => Answer::Absent,
        (Verb::Inspect, [Reply::Bulk(value), Reply::Int(left_ms)]) => found(value, *left_ms),
        (Verb::Inspect, &[Reply::Int(1), Reply::Int(left_ms @ 0..)]) => {
            found(&asked.token, left_ms)
        }
        (Verb::Inspect, &[Reply::Int(0), Reply::Int(left_ms), Reply::Int(readers @ 0..)]) => {
            Answer::Shared { readers, left_ms: Some(left_ms) }
        }
        _ => return None,
    })
}

/// The answer to a request to join the wait queue, or to leave it.
fn answer_of_waiting(asked: &Asked, reply: &Reply) -> Option<Answer> {
    let is_of_reader = asked.is_of_reader;
    match (asked.verb, reply) {
        (_, Reply::Error(..)) => Some(Answer::Failed(Failure::ProtocolError)),
        (Verb::Leave, Reply::Int(0..=2)) => Some(Answer::Done),
        (Verb::JoinWaitlist, Reply::Array(said)) => match said[..] {
            [Reply::Int(0), Reply::Int(left_ms), Reply::Int(rank)] => {
                Some(Answer::Enrolled { left_ms, rank: u32::try_from(rank).ok()? })
            }
            [Reply::Int(1), Reply::Int(_), Reply::Int(_)] => Some(Answer::Free),
            [Reply::Int(2), Reply::Int(left_ms), Reply::Int(rank)] => {
                let rank = u32::try_from(rank).ok()?;
                Some(match is_of_reader {
                    true => Answer::EnrolledBehindWriter { left_ms, rank },
                    false => Answer::EnrolledBehindReaders { left_ms, rank },
                })
            }
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn replies_of(asked: &Asked) -> usize {
    let more = match asked.verb {
        _ if asked.is_of_several || asked.is_of_reader => 0,
        Verb::AcquireAgain => 1,
        _ => 0,
    };
    let more = more + usize::from(asked.asks_end);
    1 + more + usize::from(asked.subscribes) + usize::from(asked.looks)
}

/// Whether the reply says that the key has a value of another type.
fn is_of_another_type(reply: &Reply) -> bool {
    match reply {
        Reply::Error(code, text) => Failure::of_error(code, text).is_of_another_type(),
        _ => false,
    }
}

pub(super) fn is_ok(reply: &Reply) -> bool {
    matches!(reply, Reply::Status(word) if word == b"OK")
}
