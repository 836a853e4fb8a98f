//! What a server reports of its own memory and its clock, and the note that it keeps about them.

use crate::schedules::plants::Plant;
use crate::world::commands::{Command, FORBIDDEN};
use crate::world::store::{Deed, Memory, Past};

/// The error of a command about a key of another type.
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

impl<'a> Command<'a, '_> {
    pub(super) fn tell_run_id(&mut self) -> Deed<'a> {
        let Some(memory) = &self.store.memory else { return self.error(FORBIDDEN) };
        let text = format!("run_id:{}\r\n", memory.run_id());
        self.bulk(text.as_bytes());
        Deed::Nothing
    }

    pub(super) fn tell_time(&mut self) -> Deed<'a> {
        if self.store.memory.is_none() {
            return self.error(FORBIDDEN);
        }
        let (seconds, micros) =
            (self.now_ms.div_euclid(1_000), self.now_ms.rem_euclid(1_000) * 1_000);
        self.say("*2\r\n");
        self.bulk(seconds.to_string().as_bytes());
        self.bulk(micros.to_string().as_bytes());
        Deed::Nothing
    }

    pub(super) fn tell_role(&mut self) -> Deed<'a> {
        let Some(memory) = &self.store.memory else { return self.error(FORBIDDEN) };
        let role = if memory.past.is_replica { "slave" } else { "master" };
        let text = format!("role:{role}\r\nmaster_replid2:{}\r\n", self.replid2(memory));
        self.bulk(text.as_bytes());
        Deed::Nothing
    }

    pub(super) fn tell_promotion(&mut self) -> Deed<'a> {
        let id = match &self.store.memory {
            Some(memory) if memory.past.is_replica && !self.has(Plant::HidesPromotions) => {
                "replica".to_owned()
            }
            Some(memory) => self.replid2(memory),
            None => "0".repeat(40),
        };
        self.bulk(id.as_bytes());
        Deed::Nothing
    }

    fn replid2(&self, memory: &Memory) -> String {
        if self.has(Plant::HidesPromotions) { "0".repeat(40) } else { memory.replid2() }
    }

    pub(super) fn tell_log(&mut self) -> Deed<'a> {
        let Some(memory) = &self.store.memory else { return self.error(FORBIDDEN) };
        let text = format!("aof_enabled:{}\r\n", u8::from(memory.past.is_logged));
        self.bulk(text.as_bytes());
        Deed::Nothing
    }

    pub(super) fn tell_syncing(&mut self) -> Deed<'a> {
        if self.store.memory.is_none() {
            return self.error(FORBIDDEN);
        }
        self.say("*2\r\n");
        self.bulk(b"appendfsync");
        self.bulk(b"always");
        Deed::Nothing
    }

    /// Whether the server shows that it never was a replica.
    fn is_new(&self, memory: &Memory) -> bool {
        let Past { promotion, was_replica, .. } = memory.past;
        match () {
            () if self.has(Plant::NewWithoutProof) => true,
            () if self.has(Plant::ZerosProveNew) => promotion.is_none(),
            () => !was_replica,
        }
    }

    pub(super) fn tell_note(&mut self) -> Deed<'a> {
        let Some(memory) = &self.store.memory else { return self.error(FORBIDDEN) };
        if memory.past.is_retyped {
            return self.error(WRONG_TYPE);
        }
        let note = memory.note.clone().unwrap_or_default();
        self.bulk(&note);
        Deed::Nothing
    }

    /// The script that replaces the note, if it is what the client has judged.
    pub(super) fn mark(&mut self) -> Deed<'a> {
        if let Some(why) = self.write_refusal("set", true) {
            return self.script_error(&why);
        }
        let now_ms = self.now_ms;
        let [_, _, _, _, judged, head, since, tail, until] = *self.words else {
            return self.error("ERR wrong number of arguments");
        };
        let Some(memory) = &self.store.memory else { return self.error(FORBIDDEN) };
        if memory.past.is_retyped {
            return self.script_error(WRONG_TYPE);
        }
        let shows_it = self.is_new(memory);
        let Some(memory) = &mut self.store.memory else { return self.error(FORBIDDEN) };
        if memory.note.as_deref().unwrap_or_default() == judged {
            let text = |word: &'a [u8]| std::str::from_utf8(word).unwrap_or_default();
            let is_new = shows_it && text(until).parse().is_ok_and(|until: i64| now_ms <= until);
            let is_fresh = text(since) == "fresh" && is_new;
            let since = match text(since) {
                "fresh" if is_new => format!("-{now_ms}"),
                "fresh" | "now" => now_ms.to_string(),
                number => number.to_owned(),
            };
            let note = format!("{} {since} {}", text(head), text(tail));
            memory.write(note);
            let life = text(tail).split(' ').nth(1).unwrap_or_default();
            if is_fresh || since == now_ms.to_string() {
                self.begin_numbers(life, is_fresh);
            }
        }
        let note = self.store.memory.as_ref().and_then(|it| it.note.clone()).unwrap_or_default();
        self.say("*2\r\n");
        self.bulk(&note);
        self.say(&format!(":{now_ms}\r\n"))
    }

    /// The script that notes a longer TTL.
    pub(super) fn raise(&mut self) -> Deed<'a> {
        if let Some(why) = self.write_refusal("set", true) {
            return self.script_error(&why);
        }
        let argument = |it: usize| {
            self.words.get(it).map_or("", |word| std::str::from_utf8(word).unwrap_or_default())
        };
        let (ttl, life) = (argument(4), argument(5));
        let Some(memory) = &mut self.store.memory else { return self.error(FORBIDDEN) };
        if memory.past.is_retyped {
            return self.script_error(WRONG_TYPE);
        }
        let text = memory.note.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let mut words: Vec<&str> = text.split(' ').collect();
        let number = |word: &str| word.parse::<i64>().unwrap_or_default();
        if words.len() >= 6 && words[5] == life && number(words[4]) < number(ttl) {
            let generation = (number(words[2]) + 1).to_string();
            (words[2], words[4]) = (&generation, ttl);
            let note = words.join(" ");
            memory.write(note);
        }
        self.integer(0);
        Deed::Nothing
    }

    fn bulk(&mut self, text: &[u8]) {
        self.out.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
        self.out.extend_from_slice(text);
        self.say("\r\n");
    }
}
