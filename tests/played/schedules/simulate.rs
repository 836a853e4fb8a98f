//! Plays many seeds, and reports the results. If a seed fails, prints its story.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::schedules::generate::{Wish, schedule};
use crate::schedules::play::play;
use crate::schedules::schedule::Schedule;
use crate::schedules::shrink::{fails_like, shrink};
use crate::world::clocks::MS;

/// Seeds are handed out in portions of this size.
const SHARE: u64 = 64;

/// The number of violations after which a simulation stops.
pub(crate) const ENOUGH: usize = 10;

#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) seeds: u64,
    pub(crate) violations: Vec<(u64, String)>,
    /// How many broke an assumption, and in how many of these two holds overlapped.
    pub(crate) broken: u64,
    /// How many had fencing tokens.
    pub(crate) fenced: u64,
    pub(crate) overlapped: u64,
    pub(crate) granted: u64,
    pub(crate) faults: u64,
    /// As in `Outcome`.
    excused: u64,
    excused_with_rival: u64,
    simulated_ms: i64,
    events: u64,
    /// Processor time.
    took: Duration,
}

impl Figures {
    /// Plays one more seed.
    fn add(&mut self, seed: u64) {
        let schedule = Rc::new(schedule(seed, Wish::Any));
        let outcome = play(&schedule, false);
        let hitches = schedule.clients.iter().map(|it| it.hitches.len()).sum::<usize>();
        self.seeds += 1;
        self.fenced += u64::from(schedule.is_fenced);
        self.broken += u64::from(!schedule.sins.is_empty());
        self.overlapped += u64::from(outcome.overlapped);
        self.granted += outcome.granted as u64;
        self.faults += (schedule.faults.len() + hitches) as u64;
        self.simulated_ms += outcome.simulated / MS;
        self.events += outcome.events;
        self.excused += outcome.excused;
        self.excused_with_rival += outcome.excused_with_rival;
        self.violations.extend(outcome.violation.map(|it| (seed, it)));
    }

    fn join(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.violations.extend(other.violations);
        self.fenced += other.fenced;
        self.broken += other.broken;
        self.overlapped += other.overlapped;
        self.granted += other.granted;
        self.faults += other.faults;
        self.simulated_ms += other.simulated_ms;
        self.events += other.events;
        self.excused += other.excused;
        self.excused_with_rival += other.excused_with_rival;
        self.took += other.took;
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.seeds as f64 / self.took.as_secs_f64();
        write!(f, "{} schedules, {} violations; ", self.seeds, self.violations.len())?;
        write!(f, "{rate:.0} a second and core; {} with fencing tokens; ", self.fenced)?;
        write!(f, "{} broke an assumption, {} of them ", self.broken, self.overlapped)?;
        write!(f, "so that two held one lock; ")?;
        let days = self.simulated_ms as f64 / 86_400_000.0;
        write!(f, "{days:.1} days simulated, {} locks granted, ", self.granted)?;
        write!(f, "{} faults injected, {} events; ", self.faults, self.events)?;
        write!(f, "{} times a grant on its way was counted, ", self.excused)?;
        write!(f, "{} of them with another's lock in between", self.excused_with_rival)
    }
}

/// The processor time of this thread. Other threads may use the processor as well.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that may be written to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Plays these seeds on this number of threads, until each thread has seen enough violations.
pub(crate) fn simulate(seeds: Range<u64>, threads: usize, enough: usize) -> Figures {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut figures = Figures::default();
        loop {
            let first = next.fetch_add(SHARE, Ordering::Relaxed);
            if first >= seeds.end || figures.violations.len() >= enough {
                figures.took = processor_time();
                return figures;
            }
            (first..seeds.end.min(first + SHARE)).for_each(|it| figures.add(it));
        }
    };
    let mut figures = Figures::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|it| figures.join(it.join().expect("it ends")));
    });
    figures.violations.sort();
    figures
}

/// The story of a schedule.
pub(crate) fn story_of(schedule: &Rc<Schedule>) -> String {
    let outcome = play(schedule, true);
    let verdict = match (&outcome.violation, outcome.overlapped) {
        (Some(words), _) => format!("VIOLATION: {words}"),
        (None, true) => "two held one lock, as the broken assumption allows".to_owned(),
        (None, false) => "nothing was wrong".to_owned(),
    };
    format!("{schedule}\n{}\n{verdict}\n", outcome.story.unwrap_or_default())
}

/// Describes the failure of a seed by the smallest schedule that shows it.
pub(crate) fn tell(whole: Schedule, violation: &str) -> String {
    let seed = whole.seed;
    let smallest = shrink(whole, &fails_like(violation));
    let story = story_of(&Rc::new(smallest));
    format!(
        "{story}\nThat is what is left of seed {seed}. To have it again:\n  \
         REDLOCK_SEED={seed} cargo test --test played one_seed -- --ignored --nocapture\n"
    )
}
