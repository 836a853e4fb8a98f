//! Locks, from the call that took each to its end: no two at the same time, and none beyond its deadline.

use std::collections::HashMap;

use super::Limits;
use super::line::{Call, Event, Line, Op, Return};
use super::read::History;
use super::verdict::{Rule, Violation, ms};

/// A lock that was held.
struct HeldLock<'a> {
    resource: &'a str,
    taken: usize,
    /// The earliest and the latest possible deadline.
    until: (i64, i64),
    /// The line that says so.
    set_by: usize,
    /// From when on others may hold it as well: from the start, from a call on, or never.
    shared_from: i64,
    /// The call that released it, or in which it was found lost.
    end: Option<usize>,
}

struct Checker<'a, 'h> {
    history: &'h History<'a>,
    limits: &'h Limits,
    /// By their tokens.
    holds: HashMap<&'a str, HeldLock<'a>>,
    found: &'h mut Vec<Violation>,
}

pub(super) fn check(history: &History<'_>, limits: &Limits, found: &mut Vec<Violation>) {
    let mut checker = Checker { history, limits, holds: HashMap::new(), found };
    for &at in &history.order {
        checker.follow(at);
    }
    checker.sweep();
}

impl<'a, 'h> Checker<'a, 'h> {
    fn follow(&mut self, at: usize) {
        match self.line(at).event {
            Event::Call(Call { op: Op::Unlock, token: Some(token), .. }) => self.end(at, token),
            Event::Call(Call { op: Op::Downgrade, token: Some(token), .. }) => {
                self.share(at, token);
            }
            Event::Return(it) => self.follow_return(at, it),
            Event::Look { token, held: true, .. } => self.claim(at, token, "is said to be held"),
            Event::Wrote(write) => self.claim(at, write.token, "was written under"),
            _ => {}
        }
    }

    fn follow_return(&mut self, at: usize, it: Return<'a>) {
        let Some(call) = self.history.partner(at) else { return };
        let Event::Call(asked) = self.line(call).event else { return };
        let is_ok = it.status == "OK";
        match (it.op, it.token) {
            (Op::Lock | Op::TryLock | Op::Share | Op::Continue, Some(token))
                if is_ok && !self.holds.contains_key(token) =>
            {
                self.take(at, token, asked.ttl_ms, it);
            }
            (Op::Lock | Op::TryLock | Op::Share, Some(token)) if is_ok => {
                let words = format!("{token} is the token of two locks");
                self.report(Rule::TokenReused, words, &[self.holds[token].taken, at]);
            }
            (Op::Extend | Op::Continue, Some(token)) if is_ok => {
                self.extend(at, token, asked.ttl_ms, it);
            }
            (Op::Confirm, _) if is_ok => {
                if let Some(token) = asked.token {
                    self.claim(call, token, "was confirmed");
                }
            }
            (op, _) if it.status == "LOST" && !it.held && op != Op::Unlock => {
                asked.token.into_iter().for_each(|token| self.end(call, token));
            }
            (op, _) if it.status == "LOST" && it.held && op != Op::Confirm => {
                let words = "the lock is lost, and its lease says that it is held";
                self.report(Rule::HeldAfterEnd, words, &[at]);
            }
            _ => {}
        }
        if it.status == "FORKED" && !self.is_of_another(at, asked.token) {
            self.report(Rule::Status, "nobody else has taken this lock", &[call, at]);
        }
        if it.op == Op::Unlock && it.held {
            self.report(Rule::HeldAfterEnd, "a lease is held after its release", &[at]);
        }
    }

    fn take(&mut self, at: usize, token: &'a str, ttl_ms: i64, it: Return<'a>) {
        let Some(until) = it.until else { return };
        let most = self.line(at).time + self.validity(ttl_ms);
        if until.0 > most {
            let words = format!("{} too long for a TTL of {ttl_ms} ms", ms(until.0 - most));
            self.report(Rule::Validity, words, &[at]);
        }
        let shared_from = if it.op == Op::Share { i64::MIN } else { i64::MAX };
        let (resource, taken, set_by) = (it.resource, at, at);
        let hold = HeldLock { resource, taken, until, set_by, shared_from, end: None };
        self.holds.insert(token, hold);
    }

    fn extend(&mut self, at: usize, token: &'a str, ttl_ms: i64, it: Return<'a>) {
        let call = self.history.partner(at).unwrap_or(at);
        let (Some(until), Some(hold)) = (it.until, self.of(at, token)) else { return };
        let (before, set_by, end) = (hold.until, hold.set_by, hold.end);
        let asked_at = self.line(call).time;
        if let Some(end) = end {
            self.report(Rule::Revived, "an ended lock was extended", &[set_by, end, call, at]);
        } else if asked_at > before.1 {
            let late = ms(asked_at - before.1);
            let words = format!("a lock was extended {late} after its deadline, and lives again");
            self.report(Rule::Revived, words, &[set_by, call, at]);
        }
        let most = before.1.max(self.line(at).time + self.validity(ttl_ms));
        if until.0 > most {
            let words = format!("{} too long for a TTL of {ttl_ms} ms", ms(until.0 - most));
            self.report(Rule::Validity, words, &[set_by, at]);
        }
        if until.1 < before.0 {
            let words = format!("an extension has made it {} shorter", ms(before.0 - until.1));
            self.report(Rule::Validity, words, &[set_by, at]);
        }
        if let Some(hold) = self.holds.get_mut(token) {
            hold.until = (hold.until.0.max(until.0), hold.until.1.max(until.1));
            hold.set_by = at;
        }
    }

    /// The lock of this token, which must belong to this process.
    fn of(&mut self, at: usize, token: &str) -> Option<&HeldLock<'a>> {
        let who = self.line(at).process;
        match self.holds.get(token).map(|hold| hold.taken) {
            None => self.report(Rule::Unheld, "nobody took the lock of this token", &[at]),
            Some(taken) if self.line(taken).process != who => {
                self.report(Rule::Foreign, format!("{who} did not take it"), &[taken, at]);
            }
            Some(_) => return self.holds.get(token),
        }
        None
    }

    /// Whether another process took the lock of this token.
    fn is_of_another(&self, at: usize, token: Option<&str>) -> bool {
        let hold = token.and_then(|token| self.holds.get(token));
        hold.is_some_and(|hold| self.line(hold.taken).process != self.line(at).process)
    }

    /// At this moment a process believed that it held the lock.
    fn claim(&mut self, at: usize, token: &str, what: &str) {
        let Some(hold) = self.of(at, token) else { return };
        let (until, set_by, end) = (hold.until.1, hold.set_by, hold.end);
        let time = self.line(at).time;
        if let Some(end) = end {
            let words = format!("a lock {what} after its end");
            self.report(Rule::HeldAfterEnd, words, &[end, at]);
        } else if time > until {
            let words = format!("a lock {what} {} after its deadline", ms(time - until));
            self.report(Rule::PastDeadline, words, &[set_by, at]);
        }
    }

    /// The lock ends with this call. A forked child does not end its parent's lock.
    fn end(&mut self, call: usize, token: &str) {
        let who = self.line(call).process;
        let history = self.history;
        if let Some(hold) = self.holds.get_mut(token)
            && history.lines[hold.taken].process == who
        {
            hold.end.get_or_insert(call);
        }
    }

    /// The lock may be shared from this call on.
    fn share(&mut self, call: usize, token: &str) {
        let time = self.line(call).time;
        if let Some(hold) = self.holds.get_mut(token) {
            hold.shared_from = hold.shared_from.min(time);
        }
    }

    /// Reports two holds of one resource that overlap while one of them is exclusive, and more permits of a
    /// semaphore than there are.
    fn sweep(&mut self) {
        // A lock of several resources counts as a lock of each.
        let of_each = |hold: &'_ HeldLock<'a>| hold.resource.split('+').map(permits);
        let spans = self.holds.values().map(|hold| (hold, self.span(hold)));
        let mut all: Vec<_> =
            spans.flat_map(|(hold, span)| of_each(hold).map(move |it| (it, hold, span))).collect();
        all.sort_by_key(|((resource, _), hold, (from, _))| (*resource, *from, hold.taken));
        let mut open: Vec<(&str, usize, &HeldLock<'_>, i64)> = Vec::new();
        let (mut overlaps, mut crowds) = (Vec::new(), Vec::new());
        for ((resource, permits), hold, (from, to)) in all {
            open.retain(|(of, _, _, end)| *of == resource && *end > from);
            for &(_, _, other, end) in open.iter().filter(|it| permits.max(it.1) == 1) {
                // From then on both share it.
                let until = end.min(to).min(other.shared_from.max(hold.shared_from));
                if from < until {
                    overlaps.push((other.taken, other.set_by, hold.taken, until - from));
                }
            }
            open.push((resource, permits, hold, to));
            // A caller that locks the name of a semaphore has one of its permits.
            let most = open.iter().map(|it| it.1).max().unwrap_or(1);
            let until = open.iter().map(|it| it.3).min().unwrap_or(from);
            if most > 1 && open.len() > most && from < until {
                let proof = open.iter().map(|it| it.2.taken).collect::<Vec<_>>();
                crowds.push((most, until - from, proof));
            }
        }
        // For two locks of the same resources, one overlap is enough.
        overlaps.sort_unstable();
        overlaps.dedup_by_key(|it| (it.0, it.2));
        for (one, set_by, other, span) in overlaps {
            let names = (self.line(one).process, self.line(other).process);
            let words = format!("{} and {} both hold it for {}", names.0, names.1, ms(span));
            let mut proof = vec![one, set_by, other];
            proof.dedup();
            self.report(Rule::Overlap, words, &proof);
        }
        for (most, span, proof) in crowds {
            let words = format!("{} have one of {most} permits for {}", proof.len(), ms(span));
            self.report(Rule::Overlap, words, &proof);
        }
    }

    fn span(&self, hold: &HeldLock<'a>) -> (i64, i64) {
        let taken = self.line(hold.taken);
        let mut to = hold.until.0;
        to = to.min(hold.end.map_or(i64::MAX, |end| self.line(end).time));
        to = to.min(self.history.last_alive(taken.process).unwrap_or(i64::MAX));
        (taken.time, to)
    }

    /// The maximum validity of a lock with this TTL: the TTL less the drift, and less 2 ms for the
    /// precision of the servers' clocks.
    fn validity(&self, ttl_ms: i64) -> i64 {
        let drift = (ttl_ms * self.limits.drift_permille + 999) / 1000;
        (ttl_ms - drift - 2) * 1_000_000
    }

    fn line(&self, at: usize) -> &'h Line<'a> {
        &self.history.lines[at]
    }

    fn report(&mut self, rule: Rule, words: impl Into<String>, proof: &[usize]) {
        let proof: Vec<_> = proof.iter().map(|&at| self.line(at)).collect();
        self.found.push(Violation::new(rule, words, &proof));
    }
}

/// The name of a resource, and how many callers may hold it at the same time.
fn permits(resource: &str) -> (&str, usize) {
    let semaphore = resource.rsplit_once('*').and_then(|(name, of)| Some((name, of.parse().ok()?)));
    semaphore.unwrap_or((resource, 1))
}
