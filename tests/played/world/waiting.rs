//! What servers do for clients that wait for permits, and for several resources. `differential` compares
//! this with a real server.

use crate::protocol::command::several::waking::{ENROL_SCRIPT, RELEASE_SCRIPT};
use crate::protocol::command::waking::{
    ENROL_PERMITS, LEAVE_PERMITS, LEAVE_SLOT, RELEASE_PERMITS, RELEASE_SLOT,
};
use crate::schedules::plants::Plant;
use crate::world::commands::{Command, NOT_IN_SCRIPTS, number};
use crate::world::several::ALL;
use crate::world::store::{Deed, Refusal};

/// A waiting client: its channel, since when it waits, and for how long the queue then exists.
type Waiter<'a> = (&'a [u8], i64, i64);

impl<'a> Command<'a, '_> {
    /// Scripts about such queues. Returns `None` for other scripts.
    pub(super) fn eval_waiting(&mut self) -> Option<Deed<'a>> {
        let words: &[&'a [u8]] = self.words;
        let [_, script, count, rest @ ..] = words else { return None };
        let count = usize::try_from(number(count)?).ok()?;
        let (keys, rest) = rest.split_at_checked(count)?;
        let is = |text: &str| **script == *text.as_bytes();
        let (&line, slots) = keys.split_last()?;
        if is(RELEASE_SLOT) {
            let deed = self.release(rest.first()?);
            let is_done = matches!(deed, Deed::Release { done: true, .. });
            if is_done && self.wake_each(&keys[1..], keys[0]) {
                self.out.truncate(self.out.len() - b":1\r\n".len());
                self.integer(2);
            }
            return Some(deed);
        }
        if is(LEAVE_SLOT) {
            return Some(self.leave_lines(keys[0], &keys[1..], keys[1], rest.first()?));
        }
        if is(LEAVE_PERMITS) {
            let free =
                { slots.iter() }.find(|it| self.store.find(self.session.database, it).is_none());
            // If no slot is free, nobody is told.
            return Some(self.leave_lines(
                free.copied().unwrap_or(slots[0]),
                &[line],
                line,
                rest.first()?,
            ));
        }
        if is(RELEASE_PERMITS) {
            let &[value, stays] = rest else { return None };
            return Some(self.release_permits_and_wake(slots, line, value, stays));
        }
        if is(ENROL_PERMITS) {
            let &[channel, since, ttl] = rest else { return None };
            return Some(self.enrol_for_permit(
                slots,
                line,
                (channel, number(since)?, number(ttl)?),
            ));
        }
        let (names, lines) = keys.split_at_checked(2)?;
        let names = [names[0], names[1]];
        if is(ENROL_SCRIPT) {
            let [channel, since, ttl, _, places @ ..] = rest else { return None };
            let lines = { lines.iter().copied() }.zip(places.iter().filter_map(|it| number(it)));
            let lines: Vec<_> = lines.map(|(key, place)| (key, place as usize)).collect();
            return Some(self.enrol_for_all(
                names,
                &lines,
                (channel, number(since)?, number(ttl)?),
            ));
        }
        if is(RELEASE_SCRIPT) {
            let [value, _, places @ ..] = rest else { return None };
            let lines = { lines.iter().copied() }.zip(places.iter().filter_map(|it| number(it)));
            let lines: Vec<_> = lines.map(|(key, place)| (key, place as usize)).collect();
            return Some(self.release_all_and_wake(names, &lines, value));
        }
        None
    }

    /// Tells the first client in each of these queues that this resource is free. Returns whether a client
    /// was told.
    fn wake_each(&mut self, lines: &[&[u8]], name: &[u8]) -> bool {
        // Each queue is told, also after another one in which a client was told.
        lines.iter().filter(|line| self.wake(name, line, false)).count() > 0
    }

    fn leave_lines(&mut self, key: &[u8], lines: &[&[u8]], own: &[u8], channel: &[u8]) -> Deed<'a> {
        if let Some(why) = self.write_refusal("zrem", false) {
            return self.script_error(&why);
        }
        let was_there = self.take_out(own, channel);
        let is_taken = self.store.find(self.session.database, key).is_some();
        let said = match was_there || is_taken {
            true => 0,
            false => 1 + i64::from(self.wake_each(lines, key)),
        };
        self.integer(said);
        Deed::Nothing
    }

    fn release_permits_and_wake(
        &mut self,
        slots: &[&'a [u8]],
        line: &[u8],
        value: &'a [u8],
        stays: &[u8],
    ) -> Deed<'a> {
        let database = self.session.database;
        let has = |it: &&&[u8]| {
            let found = self.store.find(database, it);
            found.is_some_and(|found| *self.store.keys[found].value == *value)
        };
        let ours: Vec<&[u8]> = slots.iter().filter(has).copied().collect();
        let before = self.out.len();
        let deed = self.release_permits(slots, value, number(stays).unwrap_or(0) as usize);
        if let Deed::Release { done: true, .. } | Deed::GiveUp { done: true, .. } = deed {
            let is_gone = |it: &&&[u8]| self.store.find(database, it).is_none();
            let gone: Vec<&[u8]> = ours.iter().filter(is_gone).copied().collect();
            let told = gone.iter().filter(|slot| self.wake(slot, line, false)).count() > 0;
            self.out.truncate(before);
            self.integer(1 + i64::from(told));
        }
        deed
    }

    fn enrol_for_permit(&mut self, slots: &[&[u8]], line: &[u8], waiter: Waiter<'_>) -> Deed<'a> {
        let found = slots.iter().map(|slot| self.store.find(self.session.database, slot));
        let found: Vec<Option<usize>> = found.collect();
        if found.iter().any(Option::is_none) && self.store.lies_ms.is_none() {
            return self.say("*3\r\n:1\r\n:0\r\n:0\r\n");
        }
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self.script_error(NOT_IN_SCRIPTS);
        }
        if let Some(why) = self.write_refusal("zadd", true) {
            return self.script_error(&why);
        }
        let lefts = found.iter().flatten().map(|it| self.left_ms(*it));
        let left = lefts.chain(self.store.lies_ms).filter(|it| *it >= 0).min().unwrap_or(-1);
        let rank = self.stand_in(line, waiter);
        self.say(&format!("*3\r\n:0\r\n:{left}\r\n:{rank}\r\n"))
    }

    /// The client joins the queue of the resource that is in the way, and no other queue.
    fn enrol_for_all(
        &mut self,
        names: [&[u8]; 2],
        lines: &[(&[u8], usize)],
        waiter: Waiter<'_>,
    ) -> Deed<'a> {
        let found = names.map(|name| self.store.find(self.session.database, name));
        let lies = self.store.lies_ms;
        if found == [None, None] && lies.is_none() {
            return self.say("*4\r\n:1\r\n:0\r\n:0\r\n:0\r\n");
        }
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self.script_error(NOT_IN_SCRIPTS);
        }
        let lefts = found.map(|it| it.map(|it| self.left_ms(it)));
        let longest = |left: &Option<i64>| left.map(|it| if it < 0 { i64::MAX } else { it });
        let at = usize::from(longest(&lefts[1]) > longest(&lefts[0]));
        let left = lies.or(lefts[at]).unwrap_or(-2);
        let is_shared = found[at].is_some_and(|it| self.store.keys[it].is_reader);
        // Once a script has written something, it may need memory.
        let (mut own, mut has_written) = (None, false);
        for &(line, place) in lines {
            if place == at + 1 {
                own = Some(line);
                continue;
            }
            if let Some(why) = self.write_refusal("zrem", false) {
                return self.script_error(&why);
            }
            has_written = true;
            if !self.take_out(line, waiter.0) && found[place - 1].is_none() {
                self.wake(names[place - 1], line, false);
            }
        }
        let what = if is_shared { 2 } else { 0 };
        let rank = match own {
            None => -1,
            Some(line) => {
                if let Some(why) = self.write_refusal("zadd", !has_written) {
                    return self.script_error(&why);
                }
                self.stand_in(line, waiter) as i64
            }
        };
        self.say(&format!("*4\r\n:{what}\r\n:{left}\r\n:{rank}\r\n:{}\r\n", at + 1))
    }

    fn release_all_and_wake(
        &mut self,
        names: [&[u8]; 2],
        lines: &[(&[u8], usize)],
        value: &'a [u8],
    ) -> Deed<'a> {
        let database = self.session.database;
        let ours = names.map(|name| {
            let found = self.store.find(database, name);
            found.is_some_and(|it| *self.store.keys[it].value == *value)
        });
        let before = self.out.len();
        let deed = self.release_several(names, value);
        if self.out.get(before) == Some(&b'-') {
            return deed;
        }
        let mut told = false;
        let deletes = !self.has(Plant::DeletesNothing);
        let tells = deletes && !self.has(Plant::TellsOfNoneOfAll);
        for &(line, place) in lines.iter().filter(|it| ours[it.1 - 1] && tells) {
            told |= self.wake(names[place - 1], line, false);
        }
        let deleted = ours.iter().filter(|it| **it && deletes).count() as i64;
        self.out.truncate(before);
        self.pair(deleted, 1 + i64::from(told));
        debug_assert!(matches!(deed, Deed::Release { key: ALL, .. }));
        deed
    }
}
