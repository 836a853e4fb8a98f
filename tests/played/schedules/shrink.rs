//! Makes a failing schedule smaller, and keeps it failing. The parts that remain are the ones that matter.

use std::rc::Rc;

use crate::schedules::play::play;
use crate::schedules::schedule::{How, Schedule, Sin, Weather};

/// The maximum number of plays.
const PLAYS_MAX: usize = 1_500;

/// The smallest schedule that was found in which the same goes wrong.
pub(crate) fn shrink(schedule: Schedule, is_it: &dyn Fn(&Rc<Schedule>) -> bool) -> Schedule {
    let mut search = Search { best: Rc::new(schedule), is_it, plays: 0 };
    loop {
        let before = search.best.parts().len();
        search.leave_out_parts();
        search.simplify();
        if search.best.parts().len() == before || search.plays >= PLAYS_MAX {
            return (*search.best).clone();
        }
    }
}

/// Whether the schedule fails in the same way: with the same words, regardless of the client and the time.
pub(crate) fn fails_like(violation: &str) -> impl Fn(&Rc<Schedule>) -> bool + use<> {
    let kind = kind_of(violation);
    move |schedule| play(schedule, false).violation.is_some_and(|it| kind_of(&it) == kind)
}

pub(crate) fn overlaps(schedule: &Rc<Schedule>) -> bool {
    play(schedule, false).overlapped
}

/// A violation without the details that differ between violations of the same kind.
pub(crate) fn kind_of(violation: &str) -> String {
    let plain = |word: &&str| !word.contains(|it: char| it.is_ascii_digit() || it == '<');
    violation.split([' ', ':']).filter(plain).take(6).collect::<Vec<_>>().join(" ")
}

struct Search<'a> {
    best: Rc<Schedule>,
    is_it: &'a dyn Fn(&Rc<Schedule>) -> bool,
    plays: usize,
}

impl Search<'_> {
    /// Keeps the candidate if it still fails.
    fn try_out(&mut self, candidate: Schedule) -> bool {
        self.plays += 1;
        let candidate = Rc::new(candidate);
        let does = self.plays < PLAYS_MAX && (self.is_it)(&candidate);
        if does {
            self.best = candidate;
        }
        does
    }

    /// Leaves out halves, then quarters, and at last single parts, as long as that is possible: Zeller's
    /// delta debugging without its complements.
    fn leave_out_parts(&mut self) {
        let mut size = self.best.parts().len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < self.best.parts().len() {
                let parts = self.best.parts();
                let kept = parts.iter().enumerate();
                let kept = kept.filter(|(at, _)| !(from..from + size).contains(at));
                let kept: Vec<_> = kept.map(|it| *it.1).collect();
                if !self.try_out(self.best.with_only(&kept)) {
                    from += size;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    fn simplify(&mut self) {
        let mut change = |change: &dyn Fn(&mut Schedule)| {
            let mut candidate = (*self.best).clone();
            change(&mut candidate);
            self.try_out(candidate);
        };
        change(&|it| it.weather = Weather { least: 200_000, most: 200_000, ..Weather::CALM });
        change(&|it| it.steps_mut().for_each(|it| it.mishap = None));
        for how in [How::Blocks, How::Submits { cancelled_after: None }] {
            change(&|it| {
                let submitted = it.steps_mut().filter(|it| it.how != How::Blocks);
                submitted.for_each(|it| it.how = how);
            });
        }
        change(&|it| it.steps_mut().for_each(|it| it.keeps = false));
        change(&|it| it.steps_mut().for_each(|it| it.drives = false));
        change(&|it| it.steps_mut().for_each(|it| it.manager = 0));
        change(&|it| it.steps_mut().for_each(|it| it.before_end = None));
        change(&|it| it.weather.split_in = 0);
        change(&|it| it.weather.wake = 0);
        change(&|it| it.servers.iter_mut().for_each(|it| it.password = false));
        change(&|it| it.servers.iter_mut().for_each(|it| it.ahead = 0));
        change(&|it| it.clients.iter_mut().for_each(|it| it.ahead = 0));
        if !self.best.has(Sin::FastClocks) {
            let mut exact = (*self.best).clone();
            exact.servers.iter_mut().for_each(|it| it.per_million = 1_000_000);
            exact.clients.iter_mut().for_each(|it| it.per_million = 1_000_000);
            self.try_out(exact);
        }
    }
}
