//! Keys that are left: each must belong to somebody, and must expire.

use std::collections::HashMap;

use super::line::{Call, Event, Key, Line, Op};
use super::read::History;
use super::verdict::{Rule, Violation};

/// How much later than the return of its call a server that nobody delays may still execute a request: a
/// busy machine keeps the server from running. One millisecond of this is for rounding.
const LATE_MS: i64 = 100;

/// The relevant lines of one resource, so that not all lines must be searched for each key.
#[derive(Default)]
struct Calls {
    /// Calls that may have set a key, by line number.
    setting: Vec<usize>,
}

pub(super) fn check(history: &History<'_>, found: &mut Vec<Violation>) {
    let mut calls: HashMap<&str, Calls> = HashMap::new();
    let mut released = HashMap::new();
    for (at, line) in history.lines.iter().enumerate() {
        if let Event::Call(call) = line.event {
            if call.op.sets_keys() {
                for resource in call.resource.split('+') {
                    calls.entry(resource).or_default().setting.push(at);
                }
            } else if let (Op::Unlock, Some(token)) = (call.op, call.token) {
                released.insert(token, at);
            }
        }
    }
    let mut listing = None;
    for line in &history.lines {
        match line.event {
            Event::Listing { settled } => listing = Some((line, settled)),
            Event::Left(key) => {
                let Some((listing, settled)) = listing else {
                    let words = "a key is left, but nobody made a list";
                    found.push(Violation::new(Rule::Malformed, words, &[line]));
                    continue;
                };
                let judge = Judge { history, key, listed: listing.time, settled };
                let none = Calls::default();
                let of_key = calls.get(key.resource).unwrap_or(&none);
                let release = released.get(key.token).copied();
                let release = release.filter(|&at| is_over(history, at, listing.time));
                let release = release.map(|at| &history.lines[at]);
                if let Some(words) = judge.fault(of_key, release) {
                    let proof: Vec<_> = release.into_iter().chain([listing, line]).collect();
                    found.push(Violation::new(Rule::Orphan, words, &proof));
                }
            }
            _ => {}
        }
    }
}

/// Whether a call had returned by then.
fn is_over(history: &History<'_>, call: usize, then: i64) -> bool {
    history.partner(call).is_some_and(|end| history.lines[end].time <= then)
}

struct Judge<'a, 'h> {
    history: &'h History<'a>,
    key: Key<'a>,
    listed: i64,
    /// Since then no server and no connection has delayed a request.
    settled: i64,
}

impl Judge<'_, '_> {
    /// What is wrong with this key, if anything.
    fn fault(&self, calls: &Calls, release: Option<&Line<'_>>) -> Option<String> {
        let Key { server, resource, pttl_ms, .. } = self.key;
        let name = format!("{resource} on {server}");
        if pttl_ms < 0 {
            return Some(format!("{name} never expires"));
        }
        let expires = self.listed + pttl_ms * 1_000_000;
        let excuses = |&&at: &&usize| self.excuses(&self.history.lines[at], at, release, expires);
        match calls.setting.iter().find(excuses) {
            Some(_) => None,
            None if release.is_some() => Some(format!("{name} was released, and is there")),
            None => Some(format!("{name} has {pttl_ms} ms left, and nobody answers for it")),
        }
    }

    /// Whether this call may have set the key in a way that only its TTL removes it.
    fn excuses(
        &self,
        call: &Line<'_>,
        at: usize,
        release: Option<&Line<'_>>,
        expires: i64,
    ) -> bool {
        let Event::Call(asked) = call.event else { return false };
        let over = self.history.partner(at).map(|end| &self.history.lines[end]);
        let end = self.history.last_alive(call.process).filter(|end| *end < self.listed);
        let latest = match (end, over) {
            // Servers execute the requests of a dead process when they can, and nobody is left to release
            // the key.
            (Some(end), _) => end,
            // The call is still under way.
            (None, None) => self.listed,
            (None, Some(over)) if over.time > self.listed => over.time,
            // A lock that somebody holds, or whose lease was freed without a release.
            (None, Some(over)) if release.is_none() && self.is_about_it(asked, over) => over.time,
            _ => return false,
        };
        let latest = latest.max(self.settled) + (asked.ttl_ms + LATE_MS) * 1_000_000;
        call.time <= self.listed && expires <= latest
    }

    /// Whether a call was about the lock that has set the key.
    fn is_about_it(&self, asked: Call<'_>, over: &Line<'_>) -> bool {
        let token = Some(self.key.token);
        asked.token == token || matches!(over.event, Event::Return(it) if it.token == token)
    }
}
