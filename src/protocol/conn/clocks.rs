//! Whether a server's clock runs evenly. A server whose clock was set forward has dropped keys before their
//! time. So it is treated like one that lost its memory.
//!
//! The clock is read when a connection begins and along with every acquire. So the very grant that profits
//! from a step shows the step. What is known of a clock outlives the connection. It also outlives the server's
//! process if that kept its memory, because a clock that is set meanwhile makes keys expire as well.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::protocol::command::guard::MemoryId;
use crate::protocol::command::identity::RunId;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::offset::{Course, Offset, Showing};
use crate::protocol::quorum::validity::Drift;

/// What is known of the clock of one server, for all connections to it.
pub(crate) struct Clock {
    state: Mutex<State>,
    /// Whether the clock was set forward, as far as is known. Nearly always it was not.
    was_set_forward: AtomicBool,
    /// Whether the clock was set and nobody was told yet.
    has_news: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The process whose clock it is, its memory if that has begun, and what the clock has shown.
    known: Option<(RunId, Option<MemoryId>, Offset)>,
    step: Option<Step>,
    news: Option<Course>,
}

/// The clock was set forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    /// When the step was seen.
    pub(crate) at: Moment,
    pub(crate) ms: i64,
}

/// Another server, or another process that has lost the memory of the one before it, has taken its place. Or the memory
/// of a process has begun that had none when it was last heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Succession {
    is_beginning: bool,
    /// When the server before it was last heard.
    heard_at: Moment,
    /// By how much its clock may be ahead of where the clock before it would be, and whether it is ahead for sure.
    ahead_ms: i64,
    is_ahead: bool,
}

impl Succession {
    /// When, at the latest, the memory was lost that has ended this long ago by the clock of the new server. Its clock may
    /// have been set since, or be wrong, and it has lost nothing before the other one was last heard. If its clock is
    /// ahead, it may have been set just now, and keys have expired. A server that is new has lost nothing else.
    pub(crate) fn lost_at(&self, ago_ms: i64, is_new: bool, now: Moment) -> Option<Moment> {
        let lost_at = now.plus_ms(self.ahead_ms.saturating_sub(ago_ms).min(0));
        match self.is_ahead {
            true => Some(now),
            false if self.is_beginning && is_new => None,
            false => Some(if lost_at < self.heard_at { now } else { lost_at }),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        let (was_set_forward, has_news) = Default::default();
        Self { state: Mutex::new(State::default()), was_set_forward, has_news }
    }
}

impl Clock {
    /// Notes what the clock of the server with this process and memory has shown. Returns whether it has taken the place
    /// of another one.
    pub(crate) fn note(
        &self,
        (id, memory): (RunId, Option<MemoryId>),
        showing: &Showing,
        drift: Drift,
    ) -> Option<Succession> {
        self.with(|state| {
            let course = match &mut state.known {
                Some((process, life, offset))
                    if (life.is_some() || memory.is_none())
                        && (*process == id || life.is_some() && *life == memory) =>
                {
                    (*process, *life) = (id, memory);
                    offset.note(showing, drift)
                }
                known => {
                    // The server's note guards against a restart. But its time is that of this clock.
                    let before = known.as_ref().map(|(process, _, offset)| Succession {
                        is_beginning: *process == id,
                        heard_at: offset.heard_at(),
                        ahead_ms: offset.ahead_ms(showing, drift),
                        is_ahead: offset.is_behind(showing, drift),
                    });
                    let known = Some((id, memory, Offset::of(showing)));
                    *state = State { known, ..State::default() };
                    self.was_set_forward.store(false, Ordering::Relaxed);
                    return before;
                }
            };
            if course == Course::Even {
                return None;
            }
            if let Course::Forward { ms } = course {
                state.step = Some(Step { at: showing.heard, ms });
                self.was_set_forward.store(true, Ordering::Relaxed);
            }
            state.news = Some(course);
            self.has_news.store(true, Ordering::Relaxed);
            None
        })
    }

    /// When the clock was last set forward.
    pub(crate) fn step(&self) -> Option<Step> {
        if !self.was_set_forward.load(Ordering::Relaxed) {
            return None;
        }
        self.with(|state| state.step)
    }

    /// How the clock was set, if that is news.
    pub(crate) fn take_news(&self) -> Option<Course> {
        if !self.has_news.load(Ordering::Relaxed) {
            return None;
        }
        self.has_news.store(false, Ordering::Relaxed);
        self.with(|state| state.news.take())
    }

    /// What the clock shows now, in milliseconds, if anything is known of it.
    pub(crate) fn shown_ms(&self, now: Moment) -> Option<i64> {
        self.with(|state| state.known.map(|(.., offset)| offset.shown_ms(now)))
    }

    /// How far the server's clock is ahead of ours, in microseconds, if anything is known of it. Our clock
    /// shows `wall_us`. Both are clocks that people set.
    pub(crate) fn ahead_us(&self, now: Moment, wall_us: i64) -> Option<i64> {
        let middle_ns = self.with(|state| state.known.map(|(.., offset)| offset.middle_ns()))?;
        Some((middle_ns.saturating_add(now.as_nanos()) / 1_000).saturating_sub(wall_us))
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process and its memory.
    fn id(letter: char, life: u64) -> (RunId, Option<MemoryId>) {
        let process = RunId::sample(letter);
        (process, Some(MemoryId::from_random(life)))
    }

    fn showing(ms: i64, ahead_ms: i64) -> Showing {
        let at = Moment::from_nanos(0).plus_ms(ms);
        Showing { shown: (ms + ahead_ms) * 1_000_000, grain: 0, sent: at, heard: at }
    }

    #[test]
    fn a_step_is_known_until_the_server_changes() {
        let clock = Clock::default();
        clock.note(id('a', 1), &showing(0, 0), Drift::DEFAULT);
        assert_eq!((clock.step(), clock.shown_ms(Moment::from_nanos(0))), (None, Some(0)));
        assert_eq!(clock.ahead_us(Moment::from_nanos(5_000_000), 7_000), Some(-2_000));
        clock.note(id('a', 1), &showing(10, 500), Drift::DEFAULT);
        clock.note(id('a', 1), &showing(20, 500), Drift::DEFAULT);
        let step = Step { at: Moment::from_nanos(0).plus_ms(10), ms: 499 };
        assert_eq!(clock.step().map(|it| it.at), Some(step.at));
        assert!(clock.step().is_some_and(|it| (498..=500).contains(&it.ms)));
        // A restart without its data.
        clock.note(id('b', 2), &showing(30, 9_000), Drift::DEFAULT);
        assert_eq!(clock.step(), None);
    }

    #[test]
    fn a_step_outlives_a_restart_and_a_memory_loss() {
        let clock = Clock::default();
        clock.note(id('a', 1), &showing(0, 0), Drift::DEFAULT);
        clock.note(id('b', 1), &showing(10, 500), Drift::DEFAULT);
        let step = clock.step();
        assert!(step.is_some());
        clock.note(id('b', 2), &showing(20, 500), Drift::DEFAULT);
        assert_eq!(clock.step(), step);
        clock.note(id('b', 2), &showing(30, 1_500), Drift::DEFAULT);
        assert!(clock.step() > step);
    }

    /// The time of its note is that of its own clock.
    #[test]
    fn a_replacement_lost_its_memory_when_the_old_server_was_heard() {
        let now = Moment::from_nanos(0).plus_ms(20_000);
        for (ahead_ms, ago_ms, lost_ms) in [
            (0, 5_000, 15_000),
            (0, 9_000, 11_000),
            // The other one was heard after that.
            (0, 15_000, 20_000),
            // Its clock was set forward since, perhaps just now, or is another one. Or it was set back before.
            (4_000, 5_000, 20_000),
            (4_000, 3_000, 20_000),
            (10, 5_000, 20_000),
            (-4_000, 5_000, 15_000),
        ] {
            let clock = Clock::default();
            for at_ms in [0, 10_000] {
                assert_eq!(clock.note(id('a', 1), &showing(at_ms, 0), Drift::DEFAULT), None);
            }
            let showing = showing(20_000, ahead_ms);
            let succession = clock.note(id('b', 2), &showing, Drift::DEFAULT).expect("another");
            let lost_at = succession.lost_at(ago_ms, true, now).expect("it took another's place");
            let late_ms = lost_at.ms_since(Moment::from_nanos(0)) - lost_ms;
            // Clocks may run faster or slower.
            let least_ms = i64::from(lost_ms < 20_000);
            assert!((least_ms..=30).contains(&late_ms), "{ahead_ms} {ago_ms} {late_ms}");
            assert_eq!(clock.note(id('b', 2), &showing, Drift::DEFAULT), None);
        }
    }

    /// Nobody has marked the server yet. Another client may do that, and take a lock, before the clock is set. Or the
    /// clock is behind when it does that, so that its note looks old.
    #[test]
    fn a_clock_is_known_before_the_memory_begins() {
        let process = RunId::sample('a');
        let now = Moment::from_nanos(0).plus_ms(20_000);
        let begin = |ahead_ms| {
            let clock = Clock::default();
            assert_eq!(clock.note((process, None), &showing(0, 0), Drift::DEFAULT), None);
            assert_eq!(clock.note((process, None), &showing(10_000, 0), Drift::DEFAULT), None);
            let begun = clock.note(id('a', 1), &showing(20_000, ahead_ms), Drift::DEFAULT);
            assert_eq!(clock.note(id('a', 1), &showing(20_000, ahead_ms), Drift::DEFAULT), None);
            begun.expect("it has a memory now")
        };
        assert_eq!(begin(500).lost_at(5_000, true, now), Some(now));
        assert_eq!(begin(-500).lost_at(15_000, false, now), Some(now));
        for ahead_ms in [0, -500] {
            assert_eq!(begin(ahead_ms).lost_at(5_000, true, now), None, "it is a new one");
            let lost_at =
                begin(ahead_ms).lost_at(5_000, false, now).expect("it has lost its memory");
            assert!((4_950..=5_000).contains(&now.ms_since(lost_at)));
        }
        // A memory that has ended leaves the clock as it is.
        let clock = Clock::default();
        clock.note(id('a', 1), &showing(0, 0), Drift::DEFAULT);
        assert_eq!(clock.note((process, None), &showing(10, 500), Drift::DEFAULT), None);
        assert!(clock.step().is_some());
        assert!(
            clock.note((RunId::sample('b'), None), &showing(20, 500), Drift::DEFAULT).is_some()
        );
    }

    /// A slow answer may have been given at any time on its way.
    #[test]
    fn a_step_counts_from_its_answer_and_stays() {
        let clock = Clock::default();
        let at = |ms| Moment::from_nanos(0).plus_ms(ms);
        clock.note(id('a', 1), &showing(0, 0), Drift::DEFAULT);
        let slow = Showing { sent: at(10), ..showing(40, 500) };
        clock.note(id('a', 1), &slow, Drift::DEFAULT);
        assert_eq!(clock.step().map(|it| it.at), Some(at(40)));
        let step = clock.step();
        clock.note(id('a', 1), &showing(50, 0), Drift::DEFAULT);
        assert!(matches!(clock.take_news(), Some(Course::Back { .. })));
        assert_eq!(clock.step(), step);
    }

    #[test]
    fn a_step_back_is_reported_once() {
        let clock = Clock::default();
        clock.note(id('a', 1), &showing(0, 0), Drift::DEFAULT);
        clock.note(id('a', 1), &showing(10, -500), Drift::DEFAULT);
        assert_eq!(clock.step(), None);
        let news = clock.take_news();
        assert!(matches!(news, Some(Course::Back { ms: 498..=500 })), "{news:?}");
        assert_eq!(clock.take_news(), None);
    }
}
