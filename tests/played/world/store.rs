//! The keys of a server, and what can happen to them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;

use crate::schedules::plants::Plant;
use crate::schedules::records::slot_of;
use crate::world::clocks::MS;
use crate::world::commands::{Command, is_talk};
use crate::world::dice::Dice;
use crate::world::hashes::Cache;
use crate::world::lines::{Channels, Line};

/// The server's own command to delete a key that has a given value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// None: Redis 7.
    Plain,
    /// `DELEX` and `MSETEX`: Redis 8.4.
    Delex,
    /// `DELIFEQ`: Valkey 9.0.
    Delifeq,
}

/// How a server refuses requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Loading,
    Busy,
    /// Refuses commands that write.
    ReadOnly,
    Misconf,
    /// Refuses commands that need more memory.
    Oom,
    /// Forbids setting keys, by any command.
    NoPerm,
    /// Forbids the server's own command to delete.
    NoPermDelete,
    /// Forbids the second command in a script, and PTTL.
    NoPermLook,
    /// Forbids commands about channels.
    NoPermTell,
    /// An error, although the command is executed.
    AfterAll,
}

/// The effect of a command, as far as it may matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed<'a> {
    Nothing,
    /// `SET … NX`.
    Acquire {
        key: &'a [u8],
        value: &'a [u8],
        ttl_ms: Option<i64>,
        done: bool,
    },
    /// The key was there with this value; or was not there, and set again if `repaired`.
    Extend {
        key: &'a [u8],
        value: &'a [u8],
        done: bool,
        absent: bool,
        repaired: bool,
    },
    Release {
        key: &'a [u8],
        value: &'a [u8],
        done: bool,
    },
    /// The key has this value and ends soon. Or some of several keys do.
    Shorten {
        value: &'a [u8],
        done: bool,
    },
    /// For a semaphore: the token now has this slot, instead of its earlier slot if there was one. If not
    /// `done`, it keeps what it had.
    Move {
        key: &'a [u8],
        value: &'a [u8],
        ttl_ms: Option<i64>,
        done: bool,
    },
    /// For a semaphore: the token has no slot other than this one any more.
    GiveUp {
        kept: &'a [u8],
        value: &'a [u8],
        done: bool,
    },
    /// The key has a value with this tag, and the server reported the value, or that there is one.
    Inspect {
        key: &'a [u8],
        tag: Option<u64>,
    },
    Notice {
        key: &'a [u8],
        tag: Option<u64>,
    },
    /// The key was overwritten or deleted regardless of its value, which had this tag.
    Trample {
        key: &'a [u8],
        tag: u64,
    },
    /// A command or a script that this server does not know.
    Unknown,
}

/// The client at the other end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Session {
    pub(crate) database: i64,
    pub(crate) is_known: bool,
    pub(crate) is_resp3: bool,
    /// The number of the connection.
    pub(crate) connection: usize,
}

pub(crate) type Bytes = Box<[u8]>;

#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) keys: Vec<Key>,
    pub(crate) dialect: Dialect,
    pub(crate) password: Option<&'static str>,
    /// How many milliseconds early a key expires: -1 if the server reads its clock for each command, and 1
    /// if it has read the clock a moment before.
    pub(crate) early_ms: i64,
    pub(crate) refusal: Option<Refusal>,
    /// It reports that every lock belongs to another client, with this remaining time.
    pub(crate) lies_ms: Option<i64>,
    /// What it reports of its memory; `None` if nobody may ask.
    pub(crate) memory: Option<Memory>,
    /// The tags of values that two keys have. If one of them is missing, neither counts.
    pub(crate) several: Vec<u64>,
    /// The numbers of fencing tokens, by their databases and fields. They outlive all locks, so they do not count as keys
    /// of a schedule.
    pub(crate) fences: BTreeMap<(i64, Bytes), Bytes>,
    /// Whether it has lost these numbers, and no client has restored them from other servers yet.
    pub(crate) lacks_numbers: bool,
    /// Whether its clock has stood for numbers that could not be read.
    pub(crate) went_by_clock: bool,
    /// Announcements of waiting writers. An announcement is no lock, and ends soon.
    pub(crate) intents: Vec<Intent>,
    /// Wait queues, which do not count as keys of a schedule either, and listeners.
    pub(crate) lines: Vec<Line>,
    pub(crate) channels: Channels,
    /// Whether it is Redis 6.0 or later.
    pub(crate) knows_resp3: bool,
    /// The scripts that it was sent.
    pub(crate) scripts: Cache,
    /// Decides when it loses its scripts; `None`: never.
    pub(crate) loses_scripts: Option<Dice>,
    /// The planted fault.
    pub(crate) plant: Option<Plant>,
}

/// The server's memory, and its note about that.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// How often it was started.
    pub(crate) starts: u64,
    pub(crate) server: usize,
    pub(crate) note: Option<Box<[u8]>>,
    /// Whether it has `PEXPIRETIME`, as since Redis 7.0.
    pub(crate) tells_ends: bool,
    /// How often clients have written the note.
    pub(crate) writes: i64,
    pub(crate) past: Past,
}

/// What a server shows of its life beside its note.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// The number of its last promotion, until it forgets that.
    pub(crate) promotion: Option<u64>,
    /// Whether it is a replica, and whether this process ever was one.
    pub(crate) is_replica: bool,
    pub(crate) was_replica: bool,
    /// Whether all changes go into a log that is always synced.
    pub(crate) is_logged: bool,
    /// Whether the key of its note has another type.
    pub(crate) is_retyped: bool,
}

/// All that can be copied, lost and brought back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dataset {
    keys: Vec<Key>,
    fences: BTreeMap<(i64, Bytes), Bytes>,
    intents: Vec<Intent>,
    lines: Vec<Line>,
    pub(crate) note: Option<Box<[u8]>>,
}

impl Memory {
    /// The memory of a server that has been in use for a long time.
    pub(crate) fn of(server: usize) -> Self {
        let past = Past::default();
        let (tells_ends, writes) = (true, 0);
        let mut memory = Self { starts: 1, server, note: None, tells_ends, writes, past };
        let note = format!("1 {} 1 -1 0 {}", memory.run_id(), memory.first_life());
        memory.note = Some(note.into_bytes().into());
        memory
    }

    /// The name of the memory that it had at the beginning.
    pub(crate) fn first_life(&self) -> String {
        format!("{:016x}", self.server)
    }

    pub(crate) fn run_id(&self) -> String {
        format!("{:020x}{:020x}", self.server, self.starts)
    }

    /// A client writes the note.
    pub(crate) fn write(&mut self, note: String) {
        self.note = Some(note.into_bytes().into());
        self.writes += 1;
    }

    /// Another process takes the place of this one.
    pub(crate) fn restart(&mut self) {
        self.starts += 1;
        let is_logged = self.past.is_logged;
        self.past = Past { is_logged, ..Past::default() };
    }

    /// For a planted fault: its note has this generation, as for a client that does not compare generations.
    pub(crate) fn pretend_generation(&mut self, generation: i64) {
        let Some(note) = &self.note else { return };
        let text = String::from_utf8_lossy(note).into_owned();
        let mut words: Vec<&str> = text.split(' ').collect();
        let generation = generation.to_string();
        if let Some(word) = words.get_mut(2) {
            *word = &generation;
        }
        self.note = Some(words.join(" ").into_bytes().into());
    }

    /// Its `master_replid2`.
    pub(crate) fn replid2(&self) -> String {
        let id = |number| format!("{:020x}{number:020x}", self.server + 1);
        self.past.promotion.map_or_else(|| "0".repeat(40), id)
    }
}

/// A server has this token in this slot of a semaphore. Other locks have slot 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) tag: u64,
    pub(crate) slot: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) database: i64,
    pub(crate) name: Box<[u8]>,
    pub(crate) value: Box<[u8]>,
    pub(crate) tag: u64,
    /// `None`: it never expires.
    pub(crate) expires_ms: Option<i64>,
    /// It is one of the readers of the resource with this name.
    pub(crate) is_reader: bool,
}

/// A writer's announcement that it waits, in the key with this name.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) database: i64,
    pub(crate) name: Box<[u8]>,
    pub(crate) until_ms: i64,
}

/// Distinguishes values.
pub(crate) fn tag(value: &[u8]) -> u64 {
    // Fowler, Noll and Vo's FNV-1a.
    value.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// In Redis's wording.
pub(crate) const NO_SCRIPT: &[u8] = b"-NOSCRIPT No matching script. Please use EVAL.\r\n";

impl Store {
    pub(crate) fn new(dialect: Dialect, early_ms: i64, password: Option<&'static str>) -> Self {
        Self {
            keys: Vec::new(),
            dialect,
            password,
            early_ms,
            refusal: None,
            lies_ms: None,
            memory: None,
            several: Vec::new(),
            fences: BTreeMap::new(),
            lacks_numbers: false,
            went_by_clock: false,
            intents: Vec::new(),
            lines: Vec::new(),
            channels: Channels::default(),
            knows_resp3: true,
            scripts: Cache::default(),
            loses_scripts: None,
            plant: None,
        }
    }

    /// Executes a command, and writes the reply.
    pub(crate) fn execute<'a>(
        &mut self,
        session: &mut Session,
        words: &[&'a [u8]],
        now_ms: i64,
        out: &mut Vec<u8>,
    ) -> Deed<'a> {
        self.expire(now_ms);
        let start = out.len();
        let Some(words) = self.with_text(words) else {
            out.extend_from_slice(NO_SCRIPT);
            return Deed::Nothing;
        };
        let words = &*words;
        let deed = Command { store: self, session, words, now_ms, out }.run();
        if self.refusal == Some(Refusal::AfterAll) && !is_talk(words[0]) {
            out.truncate(start);
            out.extend_from_slice(b"-ERR the proxy lost its patience\r\n");
        }
        deed
    }

    /// The command, with the text of a script that is named by its hash; `None` if the server does not know
    /// the hash.
    fn with_text<'a, 'b>(&mut self, words: &'b [&'a [u8]]) -> Option<Cow<'b, [&'a [u8]]>> {
        match words {
            [name, hash, rest @ ..] if name.eq_ignore_ascii_case(b"EVALSHA") => {
                if self.loses_scripts.as_mut().is_some_and(|dice| dice.once_in(8)) {
                    self.scripts.clear();
                }
                let text = self.scripts.text(hash)?;
                Some([&[&b"EVAL"[..], text], rest].concat().into())
            }
            [name, text, ..] if name.eq_ignore_ascii_case(b"EVAL") => {
                self.scripts.learn(text);
                Some(words.into())
            }
            _ => Some(words.into()),
        }
    }

    /// It has this memory, to which its numbers belong.
    pub(crate) fn have_memory(&mut self, memory: Memory) {
        let life = memory.first_life().into_bytes().into();
        self.fences.insert((0, Box::from(&b"life"[..])), life);
        self.memory = Some(memory);
    }

    pub(crate) fn expire(&mut self, now_ms: i64) {
        if self.plant == Some(Plant::KeepsForEver) {
            return;
        }
        self.keys.retain(|it| it.expires_ms.is_none_or(|end| now_ms < end));
    }

    /// The tags of all values.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().map(|it| it.tag)
    }

    /// Where all values are.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.keys.iter().map(|it| Place { tag: it.tag, slot: slot_of(&it.name) })
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// When a key with a value of this tag expires, if it is there; `i64::MAX / MS` if it never expires. Of several
    /// resources the first to expire counts. A permit may have a second slot, which nobody extends, if the server gave
    /// it another one at first.
    pub(crate) fn expiry_of(&self, tagged: u64) -> Option<i64> {
        let ends = self.ends_of(tagged);
        match self.several.contains(&tagged) {
            true if ends.clone().count() < 2 => None,
            true => ends.min(),
            false => ends.max(),
        }
    }

    /// When the last of its keys expires.
    pub(crate) fn last_expiry_of(&self, tagged: u64) -> Option<i64> {
        self.ends_of(tagged).max()
    }

    fn ends_of(&self, tagged: u64) -> impl Iterator<Item = i64> + Clone {
        let keys = self.keys.iter().filter(move |it| it.tag == tagged);
        keys.map(|it| it.expires_ms.unwrap_or(i64::MAX / MS))
    }

    /// The server loses these keys, which are returned.
    pub(crate) fn lose(&mut self, mut is_lost: impl FnMut() -> bool) -> Vec<Key> {
        self.scripts.clear();
        if let Some(memory) = &mut self.memory {
            memory.note.take_if(|_| is_lost());
        }
        let (lost, kept) = mem::take(&mut self.keys).into_iter().partition(|_| is_lost());
        self.keys = kept;
        if is_lost() {
            self.fences.clear();
            self.lacks_numbers = true;
        }
        self.intents.retain(|_| !is_lost());
        self.lines.retain(|_| !is_lost());
        lost
    }

    /// A copy of all data.
    pub(crate) fn dataset(&self) -> Dataset {
        Dataset {
            keys: self.keys.clone(),
            fences: self.fences.clone(),
            intents: self.intents.clone(),
            lines: self.lines.clone(),
            note: self.memory.as_ref().and_then(|it| it.note.clone()),
        }
    }

    /// Gives the server this data, and returns what it had.
    pub(crate) fn replace(&mut self, data: Dataset) -> Dataset {
        let old = self.dataset();
        (self.keys, self.fences) = (data.keys, data.fences);
        (self.intents, self.lines) = (data.intents, data.lines);
        if let Some(memory) = &mut self.memory {
            memory.note = data.note;
        }
        old
    }

    pub(crate) fn find(&self, database: i64, name: &[u8]) -> Option<usize> {
        self.keys.iter().position(|it| it.database == database && *it.name == *name)
    }
}
