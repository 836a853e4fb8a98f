//! What servers do with the scripts about permits of semaphores. `differential` compares this with a real
//! server.

use crate::protocol::command::{inspect_permits, release_permits, take_permit};
use crate::schedules::plants::Plant;
use crate::world::commands::{Command, NOT_IN_SCRIPTS, number};
use crate::world::store::{Deed, Refusal};

impl<'a> Command<'a, '_> {
    /// Scripts that name all slots of a semaphore. Returns `None` for other scripts.
    pub(crate) fn eval_permits(&mut self) -> Option<Deed<'a>> {
        let words: &[&'a [u8]] = self.words;
        let [_, script, count, rest @ ..] = words else { return None };
        let is_one = [take_permit::SCRIPT, release_permits::SCRIPT, inspect_permits::SCRIPT]
            .iter()
            .any(|it| *script == it.as_bytes());
        let count = usize::try_from(number(count)?).ok()?;
        if !is_one || count > rest.len() {
            return None;
        }
        let (slots, arguments) = rest.split_at(count);
        let place = |it: &[u8]| usize::try_from(number(it)?).ok();
        match *arguments {
            [value, ttl_ms, first, tries] if *script == take_permit::SCRIPT.as_bytes() => {
                let range = (place(first)?, place(tries)?);
                Some(self.take_permit(slots, value, number(ttl_ms)?, range))
            }
            [value, stays] if *script == release_permits::SCRIPT.as_bytes() => {
                Some(self.release_permits(slots, value, place(stays)?))
            }
            [length] if *script == inspect_permits::SCRIPT.as_bytes() => {
                Some(self.inspect_permits(slots, place(length)?))
            }
            _ => None,
        }
    }

    fn take_permit(
        &mut self,
        slots: &[&'a [u8]],
        value: &'a [u8],
        ttl_ms: i64,
        (first, tries): (usize, usize),
    ) -> Deed<'a> {
        let database = self.session.database;
        let lies = self.store.lies_ms;
        let found: Vec<Option<usize>> =
            slots.iter().map(|slot| self.store.find(database, slot)).collect();
        let has = |it: &Option<usize>| it.is_some_and(|it| *self.store.keys[it].value == *value);
        let own = found.iter().rposition(has);
        let mut taken: Vec<bool> = found.iter().map(|it| it.is_some() || lies.is_some()).collect();
        let wanted = (0..tries).map(|it| (first - 1 + it) % slots.len());
        let grants_all = self.has(Plant::GrantsAll);
        let found_one = |&it: &usize| Some(it) == own || !taken[it] || grants_all;
        let got = { wanted }.find(found_one).filter(|it| Some(*it) != own);
        if let Some(slot) = got.filter(|it| !taken[*it]) {
            if let Some(why) = self.refusal_to_take() {
                return self.script_error(&why);
            }
            if let Some(own) = own {
                let old = self.store.find(database, slots[own]);
                old.map(|it| self.store.keys.remove(it));
                taken[own] = false;
            }
            taken[slot] = true;
            self.put(slots[slot], value, Some(ttl_ms));
        }
        let least = match got.or(own) {
            Some(_) => -1,
            None => {
                if self.store.refusal == Some(Refusal::NoPermLook) {
                    return self.script_error(NOT_IN_SCRIPTS);
                }
                let left = |it: &Option<usize>| it.map(|it| self.left_ms(it));
                let left = found.iter().filter_map(left).chain(lies).filter(|it| *it >= 0);
                left.min().unwrap_or(-1)
            }
        };
        let map: String = taken.iter().map(|it| if *it { '1' } else { '0' }).collect();
        let number = got.or(own).map_or(0, |it| it + 1);
        let said = format!("*3\r\n:{number}\r\n${}\r\n{map}\r\n:{least}\r\n", map.len());
        self.out.extend_from_slice(said.as_bytes());
        let (ttl_ms, done) = (Some(ttl_ms), got.is_some());
        match (tries == 1 && slots.len() > 1, got.or(own)) {
            (true, it) => Deed::Move { key: slots[it.unwrap_or(0)], value, ttl_ms, done },
            (false, it) => Deed::Acquire { key: slots[it.unwrap_or(0)], value, ttl_ms, done },
        }
    }

    pub(super) fn release_permits(
        &mut self,
        slots: &[&'a [u8]],
        value: &'a [u8],
        stays: usize,
    ) -> Deed<'a> {
        let database = self.session.database;
        let mut count = 0;
        for (place, slot) in slots.iter().enumerate() {
            let Some(found) = self.store.find(database, slot) else { continue };
            if *self.store.keys[found].value != *value || place + 1 == stays {
                continue;
            }
            if let Some(why) = self.write_refusal("del", false) {
                return self.script_error(&why);
            }
            if !self.has(Plant::DeletesNothing) {
                self.store.keys.remove(found);
            }
            count += 1;
        }
        self.integer(count);
        match stays.checked_sub(1).and_then(|it| slots.get(it)) {
            Some(kept) => Deed::GiveUp { kept, value, done: count > 0 },
            None => Deed::Release { key: slots[0], value, done: count > 0 },
        }
    }

    fn inspect_permits(&mut self, slots: &[&'a [u8]], length: usize) -> Deed<'a> {
        let (mut said, mut parts) = (Vec::new(), 0);
        for (place, slot) in slots.iter().enumerate() {
            let Some(found) = self.store.find(self.session.database, slot) else { continue };
            if self.store.refusal == Some(Refusal::NoPermLook) {
                return self.script_error(NOT_IN_SCRIPTS);
            }
            let value = &self.store.keys[found].value;
            let value = &value[..value.len().min(length)];
            let left_ms = self.left_ms(found);
            said.extend(format!(":{}\r\n${}\r\n", place + 1, value.len()).into_bytes());
            said.extend(value);
            said.extend(format!("\r\n:{left_ms}\r\n").into_bytes());
            parts += 3;
        }
        self.out.extend_from_slice(format!("*{parts}\r\n").as_bytes());
        self.out.extend(said);
        Deed::Nothing
    }

    fn refusal_to_take(&self) -> Option<String> {
        match self.store.refusal {
            Some(Refusal::NoPerm) => Some(NOT_IN_SCRIPTS.to_owned()),
            _ => self.write_refusal("set", true),
        }
    }
}
