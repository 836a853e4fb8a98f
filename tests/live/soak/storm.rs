//! Random faults of servers and workers, and how each fault ends.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::fleet::Fleet;
use crate::ground::{Ground, SERVERS};
use crate::journal::Journal;
use crate::plan::Plan;
use crate::support::proxy::BOTH;

/// How a fault ends.
#[derive(Clone, Copy)]
enum Mend {
    /// It ends by itself.
    Nothing,
    Resume,
    Restart,
}

pub(crate) struct Storm<'a, 'f> {
    plan: &'a Plan,
    dice: Dice,
    ground: &'a Ground,
    fleet: &'f mut Fleet<'a>,
    journal: &'a Journal,
    /// The current fault of each server, and its end.
    servers: [Option<(Instant, Mend)>; SERVERS],
    /// The ends of the faults at the proxies.
    detours: [Option<Instant>; SERVERS],
    /// Workers that are stopped, by slot.
    stopped: BTreeMap<usize, Instant>,
    counts: BTreeMap<&'static str, u64>,
    /// The maximum time by which this thread was late.
    lateness: Duration,
}

/// The result.
pub(crate) struct Faults {
    /// How many of each kind.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// How many workers there were in all.
    pub(crate) workers: usize,
    pub(crate) lateness: Duration,
}

/// The kinds of faults.
#[derive(Clone, Copy)]
enum Kind {
    Freeze,
    KillServer,
    Pause,
    HangUp,
    FlushScripts,
    Delay,
    Stall,
    Reset,
    CutUp,
    StopWorker,
    KillWorker,
    Forget,
}

/// Kinds that are listed more than once occur more often.
const LAWFUL: [Kind; 16] = [
    Kind::Freeze,
    Kind::Freeze,
    Kind::KillServer,
    Kind::KillServer,
    Kind::Pause,
    Kind::HangUp,
    Kind::FlushScripts,
    Kind::Delay,
    Kind::Stall,
    Kind::Stall,
    Kind::Reset,
    Kind::CutUp,
    Kind::StopWorker,
    Kind::StopWorker,
    Kind::StopWorker,
    Kind::KillWorker,
];

impl<'a, 'f> Storm<'a, 'f> {
    pub(crate) fn new(
        plan: &'a Plan,
        ground: &'a Ground,
        fleet: &'f mut Fleet<'a>,
        journal: &'a Journal,
    ) -> Self {
        let dice = Dice::new(plan.seed);
        let (servers, detours, stopped, counts) = Default::default();
        let lateness = Duration::ZERO;
        Self { plan, dice, ground, fleet, journal, servers, detours, stopped, counts, lateness }
    }

    /// Causes faults for the time of the plan, then mends all.
    pub(crate) fn rage(mut self) -> Faults {
        let end = Instant::now() + self.plan.time;
        let mut next = Instant::now();
        while Instant::now() < end {
            let now = Instant::now();
            self.mend(|until| until <= now);
            if next <= now {
                let is_over_the_line = self.plan.is_lawless && self.dice.one_in(2);
                let lawful = LAWFUL[self.dice.roll(LAWFUL.len())];
                self.do_one(if is_over_the_line { Kind::Forget } else { lawful });
                next = now + self.dice.ms(20, if self.plan.is_lawless { 150 } else { 350 });
            }
            self.wait_until(next.min(self.next_mend()).min(end));
        }
        while let Some(until) = self.servers.iter().flatten().map(|it| it.0).max() {
            self.wait_until(until);
            self.mend(|_| true);
        }
        self.mend(|_| true);
        (0..SERVERS).for_each(|number| self.ground.wait_for(number));
        Faults { counts: self.counts, workers: self.fleet.started(), lateness: self.lateness }
    }

    fn do_one(&mut self, kind: Kind) {
        match kind {
            Kind::Freeze => self.freeze(),
            Kind::KillServer => self.kill_server(),
            Kind::Pause => self.pause(),
            Kind::HangUp => self.hang_up(),
            Kind::FlushScripts => self.flush_scripts(),
            Kind::Delay => self.delay(),
            Kind::Stall => self.stall(),
            Kind::Reset => self.reset(),
            Kind::CutUp => self.cut_up(),
            Kind::StopWorker => self.stop_worker(),
            Kind::KillWorker => self.kill_worker(),
            Kind::Forget => self.forget(),
        }
    }

    fn wait_until(&mut self, then: Instant) {
        let time = then.saturating_duration_since(Instant::now());
        let begin = Instant::now();
        thread::sleep(time);
        self.lateness = self.lateness.max(begin.elapsed().saturating_sub(time));
    }

    fn next_mend(&self) -> Instant {
        let servers = self.servers.iter().flatten().map(|it| it.0);
        let detours = self.detours.iter().flatten().copied();
        let next = servers.chain(detours).chain(self.stopped.values().copied()).min();
        next.unwrap_or_else(|| Instant::now() + Duration::from_secs(1))
    }

    fn mend(&mut self, is_over: impl Fn(Instant) -> bool) {
        for number in 0..SERVERS {
            if self.detours[number].take_if(|it| is_over(*it)).is_some() {
                self.ground.proxy(number).heal();
                self.ground.proxy(number).forget_ended();
            }
            let Some((_, mend)) = self.servers[number].take_if(|it| is_over(it.0)) else {
                continue;
            };
            match mend {
                Mend::Nothing => {}
                Mend::Resume => self.ground.server(number).resume(),
                Mend::Restart => self.ground.restart(number),
            }
        }
        let over: Vec<_> =
            self.stopped.iter().filter(|it| is_over(*it.1)).map(|it| *it.0).collect();
        for slot in over {
            self.stopped.remove(&slot);
            self.fleet.cont(slot);
        }
    }

    fn strike(&mut self, kind: &'static str, target: &str) {
        *self.counts.entry(kind).or_default() += 1;
        self.journal.say(format_args!("fault kind={kind} target={target}"));
    }

    /// Servers without a fault: a minority of all, or now and then more.
    fn victims(&mut self) -> Vec<usize> {
        let most = if self.dice.one_in(5) { SERVERS } else { SERVERS / 2 };
        let wrong = self.servers.iter().flatten().count();
        let count = (1 + self.dice.roll(most)).saturating_sub(wrong);
        let mut well: Vec<_> = (0..SERVERS).filter(|&it| self.servers[it].is_none()).collect();
        let mut victims = Vec::new();
        while victims.len() < count && !well.is_empty() {
            victims.push(well.swap_remove(self.dice.roll(well.len())));
        }
        victims
    }

    /// How long a fault lasts: mostly less than a TTL, now and then more than any.
    fn span(&mut self) -> Duration {
        if self.dice.one_in(6) { self.dice.ms(1000, 3000) } else { self.dice.ms(5, 700) }
    }

    fn freeze(&mut self) {
        let until = Instant::now() + self.span();
        for number in self.victims() {
            self.strike("freeze", &format!("s{number}"));
            self.ground.server(number).freeze();
            self.servers[number] = Some((until, Mend::Resume));
        }
    }

    /// With their keys they come back at once.
    fn kill_server(&mut self) {
        let until = Instant::now() + self.span();
        for number in self.victims() {
            self.strike("kill", &format!("s{number}"));
            self.ground.server(number).kill();
            self.servers[number] = Some((until, Mend::Restart));
        }
    }

    fn pause(&mut self) {
        let time = self.span();
        for number in self.victims() {
            let kind = if self.dice.one_in(2) { "ALL" } else { "WRITE" };
            self.strike("pause", &format!("s{number}"));
            self.ground.pause(number, time, kind);
            // A little longer, because the server must not be asked anything before the pause is over.
            let until = Instant::now() + time + Duration::from_millis(50);
            self.servers[number] = Some((until, Mend::Nothing));
        }
    }

    fn hang_up(&mut self) {
        for number in self.victims() {
            self.strike("hang-up", &format!("s{number}"));
            self.ground.server(number).must(&["CLIENT", "KILL", "TYPE", "normal"]);
        }
    }

    fn flush_scripts(&mut self) {
        for number in self.victims() {
            self.strike("script-flush", &format!("s{number}"));
            self.ground.server(number).must(&["SCRIPT", "FLUSH"]);
        }
    }

    /// Some of the proxies.
    fn detours(&mut self, kind: &'static str) -> Vec<usize> {
        let until = Instant::now() + self.span();
        let victims = self.victims();
        for &number in &victims {
            self.strike(kind, &format!("p{number}"));
            self.detours[number] = Some(until);
        }
        victims
    }

    fn delay(&mut self) {
        let most = self.dice.ms(2, 150);
        for number in self.detours("delay") {
            for way in BOTH {
                self.ground.proxy(number).delay(way, Duration::ZERO, most);
            }
        }
    }

    /// Requests or replies are delayed for as long as the fault lasts.
    fn stall(&mut self) {
        let way = BOTH[self.dice.roll(2)];
        for number in self.detours("stall") {
            self.ground.proxy(number).stall(way);
        }
    }

    /// In the middle of a request or of a reply.
    fn reset(&mut self) {
        let (way, count) = (BOTH[self.dice.roll(2)], self.dice.roll(400) as u64);
        for number in self.detours("reset") {
            self.ground.proxy(number).reset_after(way, count);
        }
    }

    fn cut_up(&mut self) {
        let (way, size) = (BOTH[self.dice.roll(2)], 1 + self.dice.roll(40));
        for number in self.detours("cut-up") {
            self.ground.proxy(number).cut_up(way, size, Duration::from_millis(1));
        }
    }

    /// A fault that no promise covers. Mostly only the keys are lost, so that it happens often.
    fn forget(&mut self) {
        for number in (0..SERVERS).filter(|&it| self.servers[it].is_none()).collect::<Vec<_>>() {
            self.strike("forget", &format!("s{number}"));
            self.ground.forget(number);
        }
        if self.dice.one_in(5) {
            self.kill_server();
        }
    }

    fn stop_worker(&mut self) {
        let going: Vec<_> =
            (0..self.plan.workers).filter(|it| !self.stopped.contains_key(it)).collect();
        let Some(slot) = self.dice.pick(&going) else { return };
        let time = if self.dice.one_in(3) { self.dice.ms(500, 3500) } else { self.dice.ms(5, 500) };
        self.strike("stop-worker", &format!("slot-{slot}"));
        self.fleet.stop(slot);
        self.stopped.insert(slot, Instant::now() + time);
    }

    fn kill_worker(&mut self) {
        let Some(slot) = self.dice.pick(&self.fleet.mortals()) else { return };
        self.strike("kill-worker", &format!("slot-{slot}"));
        self.stopped.remove(&slot);
        self.fleet.replace(slot);
    }
}
