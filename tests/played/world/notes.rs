//! What a server reports of its own memory and its clock, and the note that it keeps about them.

use crate::world::commands::{Command, FORBIDDEN};
use crate::world::store::Deed;

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

    pub(super) fn tell_note(&mut self) -> Deed<'a> {
        let Some(memory) = &self.store.memory else { return self.error(FORBIDDEN) };
        let note = memory.note.clone().unwrap_or_default();
        self.bulk(&note);
        Deed::Nothing
    }

    /// The scripts that mark a server, and that raise the longest TTL.
    pub(super) fn run_on_note(&mut self, marks: bool) -> Deed<'a> {
        if let Some(why) = self.write_refusal("set", true) {
            return self.script_error(&why);
        }
        let now_ms = self.now_ms;
        let Some(memory) = &mut self.store.memory else { return self.error(FORBIDDEN) };
        let text = memory.note.as_ref().map(|note| String::from_utf8_lossy(note).into_owned());
        let borne = text.as_deref().and_then(|text| {
            let mut words = text.split(' ');
            let id = words.next()?.to_owned();
            let (since, longest) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some((id, since, longest))
        });
        let borne: Option<(String, i64, i64)> = borne;
        let argument = |it: usize| {
            self.words.get(it).map_or("", |word| std::str::from_utf8(word).unwrap_or_default())
        };
        if !marks {
            let ttl_ms = argument(4).parse().unwrap_or(0);
            if let Some((id, since, _)) = borne.filter(|it| it.2 < ttl_ms) {
                memory.note = Some(format!("{id} {since} {ttl_ms}").into_bytes().into());
            }
            self.integer(0);
            return Deed::Nothing;
        }
        let (id, how) = (argument(4), argument(6));
        let (least, until) = (argument(5).parse().unwrap_or(0), argument(7).parse().unwrap_or(0));
        let since = match &borne {
            Some(it) if it.0 == id || how == "kept" => it.1,
            None if text.is_none() && how == "fresh" && now_ms <= until => -now_ms,
            _ => now_ms,
        };
        let longest = borne.map_or(0, |it| it.2).max(least);
        memory.note = Some(format!("{id} {since} {longest}").into_bytes().into());
        let said = format!("*3\r\n:{since}\r\n:{longest}\r\n:{now_ms}\r\n");
        self.say(&said)
    }

    fn bulk(&mut self, text: &[u8]) {
        self.out.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
        self.out.extend_from_slice(text);
        self.say("\r\n");
    }
}
