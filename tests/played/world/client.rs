//! A client as the world knows it: its clock, its dice, and whether it runs.

use crate::schedules::kept::Attendance;
use crate::schedules::schedule::{ClientPlan, Hitch};
use crate::world::World;
use crate::world::clocks::{Clock, MS};
use crate::world::dice::Dice;
use crate::world::turns::Stall;

pub(crate) struct Client {
    pub(crate) clock: Clock,
    pub(crate) dice: Dice,
    /// The maximum error of the time of day that it shows; the dice for a different time at each look; and
    /// a fixed error, if one is set.
    wall_error: i64,
    wall_dice: Dice,
    wall_ahead: Option<i64>,
    /// How many threads it has.
    pub(crate) callers: usize,
    pub(crate) list: Vec<usize>,
    steps: u64,
    /// The next one is last.
    hitches: Vec<Hitch>,
    pub(crate) stopped_until: i64,
    /// Each time it was stopped, and went on.
    pub(crate) stops: Vec<(i64, i64)>,
    /// For how long it was stopped, in total.
    pub(crate) stopped: i64,
    /// It has ended, and its code no longer affects the world. All its time passes at once, so that the
    /// code ends soon.
    pub(crate) is_gone: bool,
    skipped_to: i64,
    /// It has given up a connection while something was under way. That may arrive after data that is sent
    /// over the next connection.
    pub(crate) may_be_late: bool,
    /// The random number of the next pauses, if a scenario does not leave it to chance.
    pub(crate) rigged: Option<u64>,
    /// The look at the clock, counted over all its callers, at which the caller is delayed.
    pub(crate) stall: Option<Stall>,
    /// The time of the last such delay.
    pub(crate) stalled_at: i64,
    /// How often it has waited for something, or only looked for it.
    pub(crate) polls: u64,
    /// How often calls that extend a lock have begun or ended, and how many are under way.
    pub(crate) extensions: u64,
    pub(crate) extending: usize,
    /// By manager: who drives, and who takes events.
    attendance: Vec<(Attendance, Attendance)>,
}

impl Client {
    pub(crate) fn new(seed: u64, index: usize, plan: &ClientPlan) -> Self {
        let mut wall_dice = Dice::of(seed, 5, index);
        let wall_error = wall_dice.pick(&[0, 300 * MS, 1_500 * MS, 10_000_000 * MS]);
        let wall_ahead = wall_dice.between(-wall_error, wall_error);
        let wall_ahead = (!wall_dice.once_in(3)).then_some(wall_ahead);
        Self {
            wall_error,
            wall_dice,
            wall_ahead,
            clock: Clock::new(plan.ahead, plan.per_million),
            dice: Dice::of(seed, 1, index),
            callers: 0,
            list: plan.list.clone(),
            steps: 0,
            hitches: plan.hitches.iter().rev().copied().collect(),
            stopped_until: 0,
            stops: Vec::new(),
            stopped: 0,
            is_gone: false,
            skipped_to: 0,
            may_be_late: false,
            rigged: None,
            stall: None,
            stalled_at: 0,
            polls: 0,
            extensions: 0,
            extending: 0,
            attendance: Vec::new(),
        }
    }

    pub(crate) fn attendance_of(&mut self, manager: usize) -> &mut (Attendance, Attendance) {
        if self.attendance.len() <= manager {
            self.attendance.resize(manager + 1, Default::default());
        }
        &mut self.attendance[manager]
    }

    pub(crate) fn quorum(&self) -> usize {
        self.list.len() / 2 + 1
    }

    /// The time that its clock shows.
    pub(crate) fn read(&self, now: i64) -> i64 {
        self.clock.read(now).max(self.skipped_to)
    }

    /// By how much its time of day is ahead of the truth.
    pub(super) fn wall_ahead(&mut self) -> i64 {
        let error = self.wall_error;
        self.wall_ahead.unwrap_or_else(|| self.wall_dice.between(-error, error))
    }

    /// Sets a fixed error of its time of day.
    pub(crate) fn set_wall_ahead(&mut self, ns: i64) {
        self.wall_ahead = Some(ns);
    }

    pub(crate) fn skip_to(&mut self, shown: i64) {
        self.skipped_to = self.skipped_to.max(shown.min(i64::MAX / 2));
    }

    pub(crate) fn calm_down(&mut self) {
        self.hitches.clear();
    }

    /// What happens to it at this step.
    pub(crate) fn take_step(&mut self) -> Option<Hitch> {
        self.steps += 1;
        let is_due = self.hitches.last().is_some_and(|it| it.step <= self.steps);
        self.hitches.pop_if(|_| is_due && !self.is_gone)
    }
}

impl World {
    /// The client does nothing for this time, and time passes for all others.
    pub(crate) fn stop(&mut self, client: usize, lasts: i64) {
        let (now, client) = (self.now, &mut self.clients[client]);
        let until = client.stopped_until.max(now);
        client.stopped_until = until.max(now + lasts);
        client.stopped += client.stopped_until - until;
        client.stops.push((now, client.stopped_until));
    }

    /// The client ends, and leaves its connections to the system; or the machine ends with it.
    pub(crate) fn crash(&mut self, client: usize, quietly: bool) {
        if self.clients[client].is_gone {
            return;
        }
        for connection in 0..self.connections.len() {
            if self.connections[connection].client == client {
                if quietly {
                    self.connections[connection].is_closed = true;
                } else {
                    self.close(connection);
                }
            }
        }
        self.clients[client].is_gone = true;
        self.clients[client].stopped_until = 0;
        self.records.end_all(client, self.now);
        for caller in 0..self.callers.len() {
            if self.callers[caller].client == client {
                self.wake(caller);
            }
        }
    }
}
