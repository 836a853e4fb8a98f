//! What servers do with the scripts about fencing tokens. `differential` compares this with a real server.

use crate::protocol::command::{
    acquire_with_token, raise_fence, read_fences, restore_fences, several,
};
use crate::schedules::plants::Plant;
use crate::world::commands::{Command, NOT_IN_SCRIPTS, number};
use crate::world::store::{Deed, Refusal};

/// The greatest number that is drawn: a double holds it exactly.
const LAST_MAX: i64 = 9_007_199_254_740_991;

/// A clock that shows more draws no number, in microseconds.
const CLOCK_MAX_US: i64 = 4_503_599_627_370_496;

/// The last argument if the client knows no memory.
const NO_MEMORY: &[u8] = b"----------------";

/// What a request draws: the number that it proposes, how far the drawn one may be from the server's clock, the fields
/// of its resources, and the memory to which the numbers must belong.
struct Draw<'a, 'b> {
    proposed: i64,
    spread: i64,
    fields: &'b [&'a [u8]],
    memory: &'a [u8],
}

impl<'a, 'b> Draw<'a, 'b> {
    /// The arguments behind the token and the TTL.
    fn of(words: &'b [&'a [u8]]) -> Option<Self> {
        let [proposed, spread, fields @ .., memory] = words else { return None };
        Some(Self { proposed: number(proposed)?, spread: number(spread)?, fields, memory })
    }
}

impl<'a> Command<'a, '_> {
    /// Returns `None` for other scripts.
    pub(crate) fn eval_fenced(&mut self) -> Option<Deed<'a>> {
        let words = self.words;
        let &[_, script, keys, ..] = words else { return None };
        let is = |text: &str| script == text.as_bytes();
        let count = usize::try_from(number(keys)?).ok()?;
        if is(raise_fence::SCRIPT) {
            let (keys, rest) = words.get(3..)?.split_at_checked(count)?;
            return self.raise_fence(&keys[..count - 1], rest);
        } else if is(read_fences::SCRIPT) {
            return self.read_fences(words.get(4)?);
        } else if is(restore_fences::SCRIPT) {
            return self.restore_fences(words.get(5..)?);
        } else if is(acquire_with_token::SCRIPT) {
            let &[key, _, value, ttl_ms, ref rest @ ..] = words.get(3..)? else { return None };
            return Some(self.acquire_with_token(key, value, number(ttl_ms)?, &Draw::of(rest)?));
        } else if is(several::fence::SCRIPT) {
            let &[one, other, _, value, ttl_ms, ref rest @ ..] = words.get(3..)? else {
                return None;
            };
            let (keys, ttl_ms) = ([one, other], number(ttl_ms)?);
            return Some(self.acquire_all_fenced(keys, value, ttl_ms, &Draw::of(rest)?));
        }
        None
    }

    fn acquire_with_token(
        &mut self,
        key: &'a [u8],
        value: &'a [u8],
        ttl_ms: i64,
        draw: &Draw<'a, '_>,
    ) -> Deed<'a> {
        if let Some(what) = self.draws_nothing(draw) {
            self.pair(what, 0);
            return Deed::Nothing;
        }
        // The server refuses to set before it checks whether the key exists.
        if let Some(why) = self.refusal_to_set() {
            return self.script_error(&why);
        }
        let found = self.store.find(self.session.database, key);
        let is_free = found.is_none() && self.store.lies_ms.is_none();
        if !is_free && !self.has(Plant::GrantsAll) {
            if self.store.refusal == Some(Refusal::NoPermLook) {
                return self.script_error(NOT_IN_SCRIPTS);
            }
            let left_ms = self.store.lies_ms.or_else(|| found.map(|it| self.left_ms(it)));
            let is_shared = found.is_some_and(|it| self.store.keys[it].is_reader);
            self.pair(if is_shared { 3 } else { 0 }, left_ms.unwrap_or(-2));
            return Deed::Acquire { key, value, ttl_ms: Some(ttl_ms), done: false };
        }
        if is_free {
            self.put(key, value, Some(ttl_ms));
        }
        self.draw(draw);
        Deed::Acquire { key, value, ttl_ms: Some(ttl_ms), done: is_free }
    }

    fn acquire_all_fenced(
        &mut self,
        keys: [&'a [u8]; 2],
        value: &'a [u8],
        ttl_ms: i64,
        draw: &Draw<'a, '_>,
    ) -> Deed<'a> {
        if let Some(what) = self.draws_nothing(draw) {
            self.pair(what, 0);
            return Deed::Nothing;
        }
        let before = self.out.len();
        let deed = self.acquire_several(keys, value, ttl_ms);
        if self.out[before..].starts_with(b"*2\r\n:0\r\n:0\r\n") {
            self.out.truncate(before);
            self.draw(draw);
        }
        deed
    }

    /// Why nothing can be drawn, whether or not a key can be set.
    fn draws_nothing(&self, draw: &Draw<'a, '_>) -> Option<i64> {
        let is_beyond = self.now_ms * 1_000 > CLOCK_MAX_US;
        if self.last(draw.fields) >= LAST_MAX { Some(-1) } else { is_beyond.then_some(-4) }
    }

    /// The keys are set.
    fn draw(&mut self, draw: &Draw<'a, '_>) {
        let is_known = draw.memory != NO_MEMORY;
        if is_known && !self.belongs_to(draw.memory) {
            let ago_ms = self.lost_ago_ms();
            return self.pair(-2, ago_ms);
        }
        let now_us = self.now_ms * 1_000;
        let nearest = draw.proposed.min(now_us + draw.spread).max(now_us - draw.spread);
        let drawn = nearest.max(self.last(draw.fields) + 1);
        if !self.has(Plant::ForgetsNumbers) {
            draw.fields.iter().for_each(|field| self.set_fence(field, &drawn.to_string()));
        }
        let is_by_clock = is_known && self.fence(b"clock").is_some();
        self.pair(if is_by_clock { -3 } else { -5 }, drawn);
    }

    fn raise_fence(&mut self, keys: &[&'a [u8]], rest: &[&'a [u8]]) -> Option<Deed<'a>> {
        let [value, token, fields @ .., memory] = rest else { return None };
        let token = number(token)?;
        let has = |key: &&[u8]| {
            let found = self.store.find(self.session.database, key);
            found.is_some_and(|it| *self.store.keys[it].value == **value)
        };
        if !keys.iter().all(has) {
            self.integer(0);
        } else if *memory != NO_MEMORY && !self.belongs_to(memory) {
            self.integer(3);
        } else {
            for field in fields {
                if self.last_drawn(field) >= token {
                    continue;
                }
                if let Some(why) = self.write_refusal("hset", true) {
                    return Some(self.script_error(&why));
                }
                if !self.has(Plant::ForgetsNumbers) {
                    self.set_fence(field, &token.to_string());
                }
            }
            self.integer(1);
        }
        Some(Deed::Nothing)
    }

    fn read_fences(&mut self, memory: &[u8]) -> Option<Deed<'a>> {
        let database = self.session.database;
        let numbers = self.store.fences.iter().filter(|it| it.0.0 == database);
        let is_number = |name: &[u8]| name == b"base" || number(name).is_some();
        let numbers = numbers.filter(|it| is_number(&it.0.1)).filter_map(|it| number(it.1));
        let greatest = numbers.max().unwrap_or(0);
        if memory == NO_MEMORY || self.belongs_to(memory) {
            match self.fence(b"clock").is_some() {
                true => self.four([2, greatest, 0, self.seen_ms().unwrap_or(0)]),
                false => self.four([1, greatest, 0, 0]),
            }
        } else if let Some(why) = self.write_refusal("hset", true) {
            return Some(self.script_error(&why));
        } else {
            let ago_ms = self.lost_ago_ms();
            self.four([0, greatest, ago_ms, self.seen_ms().unwrap_or(0)]);
        }
        Some(Deed::Nothing)
    }

    fn restore_fences(&mut self, rest: &[&'a [u8]]) -> Option<Deed<'a>> {
        let [generation, life, base, clock, spread, mark, seen] = rest else { return None };
        let note = self.store.memory.as_ref().and_then(|it| it.note.as_deref()).unwrap_or_default();
        let words: Vec<&[u8]> = note.split(|&it| it == b' ').collect();
        let is_noted = words.get(2) == Some(generation) && words.get(5) == Some(life);
        let is_seen = self.fence(b"seen") == Some(seen);
        if !is_noted || !is_seen || self.belongs_to(life) && self.fence(b"clock").is_none() {
            self.integer(0);
            return Some(Deed::Nothing);
        }
        let now_us = self.now_ms * 1_000;
        let mut base = number(base)?.max(self.last_drawn(b"base"));
        if *clock != b"0" {
            let spread = number(spread)?;
            base = base.max(now_us - spread).max(number(clock)?.min(now_us + spread));
        }
        if let Some(why) = self.write_refusal("hset", true) {
            return Some(self.script_error(&why));
        }
        self.set_fence(b"base", &base.to_string());
        self.set_fence(b"life", &String::from_utf8_lossy(life));
        match *mark {
            b"1" => {
                self.set_fence(b"clock", "1");
                self.store.went_by_clock = true;
            }
            _ => {
                [&b"clock"[..], b"seen"].into_iter().for_each(|it| self.delete_fence(it));
                self.store.lacks_numbers = false;
            }
        }
        self.integer(1);
        Some(Deed::Nothing)
    }

    /// The numbers of a memory that begins. Those of a new server belong to it, and all others are lost.
    pub(super) fn begin_numbers(&mut self, life: &str, is_new: bool) {
        match is_new {
            true => {
                self.set_fence(b"life", life);
                self.store.lacks_numbers = false;
            }
            false => self.set_fence(b"seen", &self.now_ms.to_string()),
        }
    }

    pub(super) fn refusal_to_set(&self) -> Option<String> {
        match self.store.refusal {
            Some(Refusal::NoPerm) => Some(NOT_IN_SCRIPTS.to_owned()),
            _ => self.write_refusal("set", true),
        }
    }

    fn belongs_to(&self, memory: &[u8]) -> bool {
        self.has(Plant::BelievesNumbers) || self.fence(b"life") == Some(memory)
    }

    fn seen_ms(&self) -> Option<i64> {
        self.fence(b"seen").and_then(number)
    }

    /// For how long it has been known that the numbers are lost. That is noted if it was not known.
    fn lost_ago_ms(&mut self) -> i64 {
        let seen = self.seen_ms().filter(|&seen| seen <= self.now_ms);
        let seen = seen.unwrap_or_else(|| {
            self.set_fence(b"seen", &self.now_ms.to_string());
            self.now_ms
        });
        self.now_ms - seen
    }

    /// The greatest number that was drawn for any of these fields, or below which none is drawn.
    fn last(&self, fields: &[&[u8]]) -> i64 {
        let lasts = fields.iter().map(|field| self.last_drawn(field));
        lasts.chain([self.last_drawn(b"base")]).max().unwrap_or(0)
    }

    fn last_drawn(&self, field: &[u8]) -> i64 {
        self.fence(field).and_then(number).unwrap_or(0)
    }

    fn fence(&self, field: &[u8]) -> Option<&[u8]> {
        let key = (self.session.database, Box::from(field));
        self.store.fences.get(&key).map(|it| &**it)
    }

    fn set_fence(&mut self, field: &[u8], value: &str) {
        let key = (self.session.database, Box::from(field));
        self.store.fences.insert(key, value.as_bytes().into());
    }

    fn delete_fence(&mut self, field: &[u8]) {
        self.store.fences.remove(&(self.session.database, Box::from(field)));
    }
}
