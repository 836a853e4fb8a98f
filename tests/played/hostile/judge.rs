//! What a client has to make of one connection: which reply belongs to which request, what the request
//! is answered with, and whether the connection is of any use after that.

use crate::command::several::{acquire, extend, release, repair, waking as several};
use crate::command::shared;
use crate::command::waking::{
    ENROL, ENROL_PERMITS, LEAVE, LEAVE_PERMITS, LEAVE_SLOT, RELEASE_AND_WAKE, RELEASE_PERMITS,
    RELEASE_SLOT,
};
use crate::command::{Answer, Place, Slots, Verb};
use crate::failure::Failure;
use crate::resp::{self, Lack, Reply};
use crate::seen;

/// A request that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Whether it is about two resources at once, or of a reader.
    pub(crate) is_of_several: bool,
    pub(crate) is_of_reader: bool,
    /// Whether the client subscribes to its channel before it, or asks behind it who waits.
    pub(crate) subscribes: bool,
    pub(crate) looks: bool,
    pub(crate) verb: Verb,
    pub(crate) resource: Vec<u8>,
    pub(crate) token: Vec<u8>,
}

impl Default for Asked {
    fn default() -> Self {
        let (is_of_several, is_of_reader, subscribes, looks) = Default::default();
        let (resource, token) = Default::default();
        let verb = Verb::Inspect;
        Self { is_of_several, is_of_reader, subscribes, looks, verb, resource, token }
    }
}

/// A request and its answer. A refusal is [`Failure::Nonsense`] here, whatever its words.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) asked: Asked,
    pub(crate) answer: Answer,
}

/// The key of the note that servers bear of their memory.
const NOTE: &[u8] = b"redlock:guard";

/// How much is kept of a name: a token is as long.
const KEPT_MAX: usize = 40;

/// What the client wants to know of the server itself, by what it is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// `INFO`: a text; of the program, unless the user may not ask.
    Info { is_program: bool },
    /// `CONFIG`: an array.
    Setting,
    /// `TIME`: two numbers.
    Clock,
    /// The note of its memory: any text.
    Note,
}

/// One connection, as far as its bytes tell.
#[derive(Default)]
pub(crate) struct Judge {
    heard: Vec<u8>,
    said: Vec<u8>,
    /// Commands without a reply.
    owed: Vec<Command>,
    replies: Vec<Reply>,
    pub(crate) end: Option<Lack>,
    /// The last question of the greeting was answered.
    pub(crate) is_up: bool,
    /// Each request that was sent: its resource and its token.
    asked: Vec<(Vec<u8>, Vec<u8>)>,
    /// The server was told to speak RESP3.
    pub(crate) is_resp3: bool,
    /// What comes next is behind a subscription.
    subscribes: bool,
    /// The server does not let us subscribe.
    pub(crate) is_unheard: bool,
    pub(crate) verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug)]
enum Command {
    Oath,
    /// What a writer says of itself while it waits.
    Aside,
    Probe {
        is_ping: bool,
    },
    /// Of which the last one ends the greeting.
    Question(Question),
    /// Whether it speaks RESP3. Ends the greeting, too.
    Hello,
    Ask(Asked),
}

impl Judge {
    /// The client sent this.
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        self.heard.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((words, length)) = resp::command(&self.heard[at..]) {
            at += length;
            match (&*words[0], self.owed.last_mut()) {
                // They belong to what comes next, and what came before.
                (b"SUBSCRIBE", _) => self.subscribes = true,
                (b"EXISTS", Some(Command::Ask(asked))) => asked.looks = true,
                (b"ZCARD", Some(Command::Ask(asked))) => asked.verb = Verb::AcquireAgain,
                _ => {
                    self.is_resp3 |= words[0] == b"HELLO";
                    let mut command = command(&words);
                    if let Some(Command::Ask(asked)) = &mut command {
                        asked.subscribes = std::mem::take(&mut self.subscribes);
                        self.asked.push((asked.resource.clone(), asked.token.clone()));
                    }
                    self.owed.extend(command);
                }
            }
        }
        self.heard.drain(..at);
    }

    /// How many replies are owed.
    pub(crate) fn owes(&self) -> usize {
        let replies = |it: &Command| match it {
            Command::Ask(asked) => replies_of(asked),
            _ => 1,
        };
        self.owed.iter().map(replies).sum::<usize>() - self.replies.len()
    }

    /// What the request about this resource was answered with. If it was sent again, in another form, that counts.
    pub(crate) fn answer_about(&self, resource: &[u8]) -> Option<Answer> {
        let (_, token) = self.asked.iter().find(|it| it.0 == resource)?;
        let is_it = |it: &(&[u8], &[u8])| *it == (resource, token);
        let asked = self.asked.iter().map(|it| (&*it.0, &*it.1)).filter(is_it).count();
        let mut answers =
            self.verdicts.iter().filter(|it| is_it(&(&it.asked.resource, &it.asked.token)));
        answers.nth(asked - 1).map(|it| it.answer.clone())
    }

    /// Whether a release of this resource was refused, the last time that it was answered.
    pub(crate) fn has_refused_release(&self, resource: &[u8]) -> bool {
        let last = self.verdicts.iter().rfind(|it| it.asked.resource == resource);
        last.is_some_and(|it| {
            let is_release = matches!(it.asked.verb, Verb::Release | Verb::ReleaseAndWake);
            is_release && it.answer == Answer::Failed(Failure::Nonsense)
        })
    }

    /// Whether the client has asked for a lock with this token, and was not told that it has it not.
    pub(crate) fn may_have_locked(&self, token: &[u8]) -> bool {
        let owed = self.owed.iter().filter_map(|it| match it {
            Command::Ask(asked) => Some(asked),
            _ => None,
        });
        let granted = self.verdicts.iter().filter(|it| it.answer.is_grant());
        let mut asked = owed.chain(granted.map(|it| &it.asked));
        let is_acquire = |it: Verb| {
            use Verb::{Acquire, AcquireAgain, AcquireFenced, Move};
            matches!(it, Acquire | AcquireAgain | AcquireFenced | Move)
        };
        asked.any(|it| is_acquire(it.verb) && it.token == token)
    }

    /// The client received this.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.said.extend_from_slice(bytes);
        let mut at = 0;
        while self.end.is_none() {
            if self.owed.is_empty() {
                if self.has_surplus(at) {
                    self.end = Some(Lack::Unwanted);
                }
                break;
            }
            match resp::reply(&self.said[at..], self.is_resp3) {
                Ok((reply, length)) => {
                    at += length;
                    self.settle(reply, self.has_surplus(at));
                }
                Err(Lack::More) => break,
                Err(lack) => {
                    seen::note(&lack);
                    self.end = Some(lack);
                }
            }
        }
        self.said.drain(..at);
    }

    /// Whether there is something from here on that is no push, nor the beginning of one.
    fn has_surplus(&self, at: usize) -> bool {
        let mut rest = &self.said[at..];
        while rest.first() == Some(&b'>') {
            match resp::reply(rest, self.is_resp3) {
                Ok((_, length)) => rest = &rest[length..],
                Err(lack) => return lack != Lack::More,
            }
        }
        !rest.is_empty()
    }

    /// Takes a reply for what is owed first, and tells whether there is more behind it: where that is one
    /// reply too many, none of them is believed.
    fn settle(&mut self, reply: Reply, has_more: bool) {
        let is_right = match self.owed[0].clone() {
            Command::Oath => is_ok(&reply),
            Command::Aside => matches!(reply, Reply::Int(0 | 1) | Reply::Error(..)),
            Command::Probe { is_ping } => settle_probe(is_ping, &reply),
            Command::Question(question) => settle_question(question, &reply),
            Command::Hello => match &reply {
                Reply::Error(code, words) => !turns_away(code, words),
                reply => *reply == Reply::Map,
            },
            Command::Ask(asked) => {
                if let Reply::Push(kind) = &reply {
                    let is_first = asked.subscribes && self.replies.is_empty();
                    if !is_first || kind != b"subscribe" {
                        return;
                    }
                }
                self.replies.push(reply);
                if self.replies.len() < replies_of(&asked) {
                    return;
                }
                let replies = std::mem::take(&mut self.replies);
                let answer = self.answer(&asked, replies);
                let answer = answer.filter(|_| !has_more || self.owed.len() > 1);
                answer.map(|answer| self.verdicts.push(Verdict { asked, answer })).is_some()
            }
        };
        if !is_right {
            self.end = Some(Lack::Unwanted);
        }
        if let (true, Some(verdict)) = (is_right, self.verdicts.last()) {
            seen::note(&verdict.answer);
        }
        let settled = self.owed.remove(0);
        self.is_up |= self.owed.is_empty() && !matches!(settled, Command::Ask(_));
    }

    /// What a request is answered with, by what was asked along with it, too.
    fn answer(&mut self, asked: &Asked, mut replies: Vec<Reply>) -> Option<Answer> {
        if asked.subscribes {
            match replies.remove(0) {
                Reply::Push(_) => {}
                Reply::Error(..) => self.is_unheard = true,
                _ => return None,
            }
        }
        let waiters = if asked.looks { replies.pop() } else { None };
        let answer = answer(asked, &replies)?;
        Some(match answer {
            Answer::Done if waiters == Some(Reply::Int(1)) => Answer::Woke,
            _ if asked.verb == Verb::Enrol && self.is_unheard => Answer::Failed(Failure::Nonsense),
            answer => answer,
        })
    }
}

/// Whether it is an error that lets nobody in.
fn turns_away(code: &str, words: &str) -> bool {
    words.contains("max number of clients") || code == "DENIED"
}

fn settle_probe(is_ping: bool, reply: &Reply) -> bool {
    match reply {
        Reply::Error(code, words) => !turns_away(code, words) && (!is_ping || code == "NOPERM"),
        Reply::Status(word) => is_ping && word == b"PONG",
        _ => false,
    }
}

/// Whoever says nothing of itself will do, and whoever says that it is no voter will not.
fn settle_question(question: Question, reply: &Reply) -> bool {
    match (question, reply) {
        (Question::Info { is_program: false } | Question::Setting, Reply::Error(code, words)) => {
            !turns_away(code, words)
        }
        // Whoever does not tell it for now is asked again later.
        (_, Reply::Error(code, words)) => {
            !turns_away(code, words) && Failure::of_error(code, words).is_of_the_kind()
        }
        (Question::Setting, Reply::Array(_)) | (Question::Note, Reply::Bulk(_)) => true,
        (Question::Info { .. }, Reply::Bulk(text)) => !str::from_utf8(text).is_ok_and(is_no_voter),
        (Question::Clock, Reply::Array(parts)) => parts.len() == 2 && parts.iter().all(is_number),
        _ => false,
    }
}

fn is_number(reply: &Reply) -> bool {
    let Reply::Bulk(text) = reply else { return false };
    str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok())
}

fn is_no_voter(text: &str) -> bool {
    let has = |line: &str| text.lines().any(|it| it.trim_end() == line);
    let value = |name: &str| {
        let value = text.lines().find_map(|it| it.strip_prefix(name));
        value.map(str::trim_end)
    };
    let is_limited = value("maxmemory:").is_some_and(|it| it != "0");
    let evicts = value("maxmemory_policy:").is_some_and(|it| it != "noeviction");
    ["role:slave", "role:replica", "redis_mode:sentinel", "server_mode:sentinel"]
        .into_iter()
        .any(has)
        || (is_limited && evicts)
}

fn command(words: &[Vec<u8>]) -> Option<Command> {
    let asked = |verb, resource: usize, token: usize| {
        let word = |it: usize| words.get(it).map_or(&[][..], |it| &it[..it.len().min(KEPT_MAX)]);
        let (resource, token) = (word(resource).to_vec(), word(token).to_vec());
        Some(Command::Ask(Asked { verb, resource, token, ..Asked::default() }))
    };
    let is = |script: &str| words.len() > 3 && words[1] == script.as_bytes();
    let of_reader = |verb, token: usize| {
        let Some(Command::Ask(asked)) = asked(verb, 3, token) else { return None };
        Some(Command::Ask(Asked { is_of_reader: true, ..asked }))
    };
    if words.len() > 4 && (is(several::ENROL_SCRIPT) || is(several::RELEASE_SCRIPT)) {
        return in_lines_of_several(words);
    }
    match (&*words[0], words.len()) {
        (b"AUTH" | b"SELECT", _) => Some(Command::Oath),
        (b"DELEX" | b"DELIFEQ" | b"MSETEX" | b"PEXPIRETIME", 1) => {
            Some(Command::Probe { is_ping: false })
        }
        (b"PING", 1) => Some(Command::Probe { is_ping: true }),
        (b"INFO", 2) => {
            Some(Command::Question(Question::Info { is_program: words[1] == b"server" }))
        }
        (b"CONFIG", 3) => Some(Command::Question(Question::Setting)),
        (b"TIME", 1) => Some(Command::Question(Question::Clock)),
        (b"GETRANGE", 4) if words[1] == NOTE => Some(Command::Question(Question::Note)),
        (b"HELLO", 2) => Some(Command::Hello),
        (b"SET", _) => asked(Verb::Acquire, 1, 2),
        (b"EVAL", 5) if words[4] == b"redlock:writer" => Some(Command::Aside),
        (b"EVAL", 6) if words[4].ends_with(b":i") => Some(Command::Aside),
        (b"EVAL", _) if is(shared::acquire::SCRIPT) => of_reader(Verb::Acquire, 6),
        (b"EVAL", _) if is(shared::extend::SCRIPT) => of_reader(Verb::Extend, 5),
        (b"EVAL", _) if is(shared::release::SCRIPT) => of_reader(Verb::Release, 5),
        (b"EVAL", _) if is(shared::release::WAKING_SCRIPT) => of_reader(Verb::ReleaseAndWake, 7),
        (b"EVAL", _) if is(shared::inspect::SCRIPT) => of_reader(Verb::Inspect, 5),
        (b"EVAL", _) if is(shared::enrol::SCRIPT) => of_reader(Verb::Enrol, 6),
        (b"EVAL", 8) if is(ENROL) => asked(Verb::Enrol, 3, 5),
        (b"EVAL", 6) if is(LEAVE) => asked(Verb::Leave, 3, 5),
        (b"EVAL", 6) if is(RELEASE_AND_WAKE) => asked(Verb::ReleaseAndWake, 3, 5),
        (b"EVAL", 7) if is(RELEASE_SLOT) => asked(Verb::ReleaseAndWake, 3, 6),
        (b"EVAL", 7) if is(LEAVE_SLOT) => asked(Verb::Leave, 3, 6),
        (b"EVAL", 7) if is(LEAVE_PERMITS) => asked(Verb::Leave, 3, 6),
        (b"EVAL", 8) if is(RELEASE_PERMITS) => asked(Verb::ReleaseRestAndWake, 3, 6),
        // Who waits for a permit is answered as who waits for a lock is.
        (b"EVAL", 9) if is(ENROL_PERMITS) => asked(Verb::Enrol, 3, 6),
        (b"EVAL", 9) if words[4].ends_with(b"#1") => asked(Verb::Move, 3, 5),
        (b"EVAL", 7) if words[4].ends_with(b"#1") => asked(Verb::ReleaseRest, 3, 5),
        (b"EVAL", 6..) if words[2] == b"2" => of_several(words),
        (b"EVAL", 8..) if words[2] == b"4" => of_several(words),
        (b"EVAL", 5) => asked(Verb::Release, 3, 4),
        (b"EVAL", 6) => asked(Verb::Extend, 3, 4),
        (b"DELEX", 4) => asked(Verb::Release, 1, 3),
        (b"DELIFEQ", 3) => asked(Verb::Release, 1, 2),
        (b"GETRANGE", 4) => asked(Verb::Inspect, 1, 4),
        // It belongs to what was asked before it.
        (b"PTTL", 2) => None,
        _ => panic!("we sent an unknown command: {words:?}"),
    }
}

/// A script about two keys and the lines of some of them.
fn in_lines_of_several(words: &[Vec<u8>]) -> Option<Command> {
    let keys: usize = String::from_utf8_lossy(&words[2]).parse().expect("a number");
    let verb = match words[1] == several::ENROL_SCRIPT.as_bytes() {
        true => Verb::Enrol,
        false => Verb::ReleaseAndWake,
    };
    let word = |it: usize| words[it][..words[it].len().min(KEPT_MAX)].to_vec();
    let (resource, token, is_of_several) = (word(3), word(3 + keys), true);
    Some(Command::Ask(Asked { is_of_several, verb, resource, token, ..Asked::default() }))
}

/// A script about two keys; or about the counter of the one, or of both.
fn of_several(words: &[Vec<u8>]) -> Option<Command> {
    let is = |script: &str| words[1] == script.as_bytes();
    let takes = [acquire::SCRIPT, acquire::SCRIPT_MSETEX, repair::SCRIPT].into_iter().any(is);
    // A key's name has few letters, and a counter's ends so.
    let is_counter = |it: usize| words[it].ends_with(b":f");
    let (verb, is_of_several, token) = match (&*words[2], words.len()) {
        (b"2", 8) if is_counter(4) => (Verb::RaiseFence, false, 5),
        (b"2", 10) if is_counter(4) => (Verb::AcquireFenced, false, 5),
        (b"2", 7) if takes => (Verb::Acquire, true, 5),
        (b"2", 7) if is(extend::SCRIPT) => (Verb::Extend, true, 5),
        (b"2", 6) if is(extend::SCRIPT) => (Verb::Inspect, true, 5),
        (b"2", 6) if is(release::SCRIPT) => (Verb::Release, true, 5),
        (b"4", 10) => (Verb::RaiseFence, true, 7),
        (b"4", 12) => (Verb::AcquireFenced, true, 7),
        _ => panic!("we sent an unknown script: {words:?}"),
    };
    let word = |it: usize| words[it][..words[it].len().min(KEPT_MAX)].to_vec();
    let (resource, token) = (word(3), word(token));
    Some(Command::Ask(Asked { is_of_several, verb, resource, token, ..Asked::default() }))
}

/// What a request about a semaphore of two permits is answered with; nothing if this is no reply to it.
fn answer_of_permits(asked: &Asked, reply: &Reply) -> Option<Answer> {
    match (asked.verb, reply) {
        (_, Reply::Error(..)) => Some(Answer::Failed(Failure::Nonsense)),
        (Verb::ReleaseRestAndWake, Reply::Int(2)) => Some(Answer::Woke),
        (Verb::ReleaseRest | Verb::ReleaseRestAndWake, Reply::Int(0)) => Some(Answer::Absent),
        (Verb::ReleaseRest | Verb::ReleaseRestAndWake, Reply::Int(1..)) => Some(Answer::Done),
        (Verb::Move, Reply::Array(said)) => {
            let [Reply::Int(got), Reply::Bulk(map), Reply::Int(left_ms)] = &said[..] else {
                return None;
            };
            let is_map = map.len() == 2 && map.iter().all(|it| b"01".contains(it));
            let got = u16::try_from(*got).ok().filter(|got| is_map && *got <= 2)?;
            let taken = (0..2).filter(|slot| map[usize::from(*slot)] == b'1').collect();
            let got = got.checked_sub(1);
            let has_it = got.is_none_or(|slot| map[usize::from(slot)] == b'1');
            has_it.then_some(Answer::Slots(Slots { got, taken, left_ms: *left_ms }))
        }
        _ => None,
    }
}

/// What a request about two resources is answered with; nothing if this is no reply to it.
fn answer_of_several(asked: &Asked, reply: &Reply) -> Option<Answer> {
    let place = |nth: i64| u16::try_from(nth).ok().filter(|nth| [1, 2].contains(nth));
    let place = |nth: i64| place(nth).map(|nth| Place { nth, of: 2 });
    let blocked = |nth: i64, left_ms: i64| {
        let left_ms = (left_ms != -2).then_some(left_ms);
        place(nth).map(|place| Answer::Blocked { place, left_ms })
    };
    let numbers: Vec<i64> = match reply {
        Reply::Error(..) => return Some(Answer::Failed(Failure::Nonsense)),
        Reply::Int(number)
            if matches!(asked.verb, Verb::Release | Verb::RaiseFence | Verb::ReleaseAndWake) =>
        {
            return match (asked.verb, number) {
                (Verb::ReleaseAndWake, 2) => Some(Answer::Done),
                (Verb::ReleaseAndWake, 0 | 1) => Some(Answer::Absent),
                (Verb::Release, 2) | (Verb::RaiseFence, 1) => Some(Answer::Done),
                (Verb::Release, 0 | 1) | (Verb::RaiseFence, 0) => Some(Answer::Absent),
                (Verb::RaiseFence, 2) => Some(Answer::Failed(Failure::Nonsense)),
                _ => None,
            };
        }
        Reply::Array(said) => {
            let number = |it: &Reply| if let Reply::Int(it) = it { Some(*it) } else { None };
            said.iter().map(number).collect::<Option<_>>()?
        }
        _ => return None,
    };
    match (asked.verb, &numbers[..]) {
        (Verb::ReleaseAndWake, [2, 1]) => Some(Answer::Done),
        (Verb::ReleaseAndWake, [2, 2]) => Some(Answer::Woke),
        (Verb::ReleaseAndWake, [0 | 1, 1 | 2]) => Some(Answer::Absent),
        (Verb::Enrol, [1, _, _, _]) => Some(Answer::Free),
        (Verb::Enrol, &[what @ (0 | 2), left_ms, rank, nth]) => {
            let rank = if rank == -1 { None } else { Some(u32::try_from(rank).ok()?) };
            let (left_ms, is_shared) = ((left_ms != -2).then_some(left_ms), what == 2);
            place(nth).map(|place| Answer::EnrolledForOne { place, left_ms, rank, is_shared })
        }
        (Verb::Acquire, [0, 0]) => Some(Answer::Done),
        (Verb::AcquireFenced, &[0, number]) if number > 0 => Some(Answer::Granted { number }),
        (Verb::AcquireFenced, [-1, 0]) => Some(Answer::Failed(Failure::Nonsense)),
        (Verb::Acquire | Verb::AcquireFenced, [0, -2]) => Some(Answer::Foreign { left_ms: None }),
        (Verb::Acquire | Verb::AcquireFenced, &[nth, left_ms]) => blocked(nth, left_ms),
        (Verb::Extend | Verb::Inspect, &[0, _, nth]) => {
            place(nth).map(|place| Answer::Lacking { place })
        }
        (Verb::Extend, &[1, left_ms, 0]) => Some(Answer::Extended { left_ms }),
        (Verb::Inspect, &[1, left_ms, 0]) => {
            Some(Answer::Found { value: asked.token.clone(), left_ms })
        }
        (Verb::Extend | Verb::Inspect, &[2, left_ms, nth]) => blocked(nth, left_ms),
        _ => None,
    }
}

fn replies_of(asked: &Asked) -> usize {
    let more = match asked.verb {
        _ if asked.is_of_several || asked.is_of_reader => 0,
        Verb::AcquireAgain => 2,
        Verb::Acquire | Verb::Inspect => 1,
        _ => 0,
    };
    1 + more + usize::from(asked.subscribes) + usize::from(asked.looks)
}

/// What a reader's request is answered with; nothing if this is no reply to it.
fn answer_of_reader(asked: &Asked, reply: &Reply) -> Option<Answer> {
    let said = match reply {
        Reply::Error(..) => return Some(Answer::Failed(Failure::Nonsense)),
        Reply::Int(1) if asked.verb == Verb::Acquire => return Some(Answer::Done),
        Reply::Array(said) => &said[..],
        _ => return None,
    };
    let found = |value: &[u8], left_ms| Answer::Found { value: value.to_vec(), left_ms };
    Some(match (asked.verb, said) {
        (Verb::Acquire, [Reply::Int(0), Reply::Int(-2)]) => Answer::Foreign { left_ms: None },
        (Verb::Acquire, &[Reply::Int(2), Reply::Int(left_ms)]) => Answer::WriterWaits { left_ms },
        (Verb::Acquire | Verb::Extend, [Reply::Int(3), Reply::Int(_)]) => {
            Answer::Failed(Failure::Nonsense)
        }
        (Verb::Extend, [Reply::Int(0), Reply::Int(_)]) => Answer::Absent,
        (Verb::Extend, &[Reply::Int(1), Reply::Int(left_ms)]) => Answer::Extended { left_ms },
        (Verb::Acquire, &[Reply::Int(0), Reply::Int(left_ms)])
        | (Verb::Extend, &[Reply::Int(2), Reply::Int(left_ms)]) => {
            Answer::Foreign { left_ms: Some(left_ms) }
        }
        (Verb::Inspect, [Reply::Bulk(value), Reply::Int(-2)]) if value.is_empty() => Answer::Absent,
        (Verb::Inspect, [Reply::Bulk(value), Reply::Int(left_ms)]) => found(value, *left_ms),
        (Verb::Inspect, &[Reply::Int(1), Reply::Int(left_ms @ 0..)]) => {
            found(&asked.token, left_ms)
        }
        (Verb::Inspect, &[Reply::Int(0), Reply::Int(left_ms), Reply::Int(readers @ 0..)]) => {
            Answer::Shared { readers, left_ms: Some(left_ms) }
        }
        _ => return None,
    })
}

/// What a request to stand in line, or not any more, is answered with.
fn answer_of_waiting(asked: &Asked, reply: &Reply) -> Option<Answer> {
    let is_of_reader = asked.is_of_reader;
    match (asked.verb, reply) {
        (_, Reply::Error(..)) => Some(Answer::Failed(Failure::Nonsense)),
        (Verb::Leave, Reply::Int(0..=2)) => Some(Answer::Done),
        (Verb::Enrol, Reply::Array(said)) => match said[..] {
            [Reply::Int(0), Reply::Int(left_ms), Reply::Int(rank)] => {
                Some(Answer::Enrolled { left_ms, rank: u32::try_from(rank).ok()? })
            }
            [Reply::Int(1), Reply::Int(_), Reply::Int(_)] => Some(Answer::Free),
            [Reply::Int(2), Reply::Int(left_ms), Reply::Int(rank)] => {
                let rank = u32::try_from(rank).ok()?;
                Some(match is_of_reader {
                    true => Answer::EnrolledBehindWriter { left_ms, rank },
                    false => Answer::EnrolledBehindReaders { left_ms, rank },
                })
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_ok(reply: &Reply) -> bool {
    matches!(reply, Reply::Status(word) if word == b"OK")
}

/// What a request is answered with; nothing if these are no replies to it.
fn answer(asked: &Asked, replies: &[Reply]) -> Option<Answer> {
    let verb = asked.verb;
    if matches!(verb, Verb::Move | Verb::ReleaseRest | Verb::ReleaseRestAndWake) {
        return answer_of_permits(asked, &replies[0]);
    }
    if asked.is_of_several {
        return answer_of_several(asked, &replies[0]);
    }
    if matches!(verb, Verb::Enrol | Verb::Leave) {
        return answer_of_waiting(asked, &replies[0]);
    }
    if asked.is_of_reader && matches!(verb, Verb::Acquire | Verb::Extend | Verb::Inspect) {
        return answer_of_reader(asked, &replies[0]);
    }
    let (verb, wakes) = match verb {
        Verb::ReleaseAndWake => (Verb::Release, true),
        verb => (verb, false),
    };
    let refused = Some(Answer::Failed(Failure::Nonsense));
    if verb == Verb::AcquireAgain {
        let [set, readers, left] = replies else { return None };
        let readers = match readers {
            Reply::Int(readers) => *readers,
            Reply::Error(..) => 0,
            _ => return None,
        };
        let first = Asked { verb: Verb::Acquire, ..asked.clone() };
        let plain = answer(&first, &[set.clone(), left.clone()])?;
        return Some(match plain {
            Answer::Foreign { left_ms } if readers > 0 => Answer::Shared { readers, left_ms },
            plain => plain,
        });
    }
    match (verb, &replies[0]) {
        (Verb::Release, Reply::Error(code, _)) if code == "WRONGTYPE" => {
            return Some(Answer::Absent);
        }
        (_, Reply::Error(..)) => return refused,
        (Verb::Release, Reply::Int(1)) => return Some(Answer::Done),
        (Verb::Release, Reply::Int(0)) => return Some(Answer::Absent),
        (Verb::Release, Reply::Int(2)) if wakes => return Some(Answer::Woke),
        (Verb::Release, _) => return None,
        (Verb::Extend, Reply::Array(said)) => {
            return match said[..] {
                [Reply::Int(1), Reply::Int(left_ms)] => Some(Answer::Extended { left_ms }),
                [Reply::Int(0), Reply::Int(_)] => Some(Answer::Absent),
                [Reply::Int(2), Reply::Int(left_ms)] => {
                    Some(Answer::Foreign { left_ms: Some(left_ms) })
                }
                _ => None,
            };
        }
        (Verb::AcquireFenced, Reply::Array(said)) => {
            return match said[..] {
                [Reply::Int(1), Reply::Int(number @ 1..)] => Some(Answer::Granted { number }),
                [Reply::Int(0), Reply::Int(-2)] => Some(Answer::Foreign { left_ms: None }),
                [Reply::Int(0), Reply::Int(left_ms)] => {
                    Some(Answer::Foreign { left_ms: Some(left_ms) })
                }
                [Reply::Int(2), Reply::Int(_)] => refused,
                [Reply::Int(3), Reply::Int(left_ms)] => {
                    Some(Answer::Shared { readers: 0, left_ms: Some(left_ms) })
                }
                _ => None,
            };
        }
        (Verb::RaiseFence, Reply::Int(1)) => return Some(Answer::Done),
        (Verb::RaiseFence, Reply::Int(0)) => return Some(Answer::Absent),
        (Verb::RaiseFence, Reply::Int(2)) => return refused,
        (Verb::Extend | Verb::AcquireFenced | Verb::RaiseFence, _) => return None,
        _ => {}
    }
    let left_ms = match &replies[1] {
        Reply::Int(-2) | Reply::Error(..) => None,
        Reply::Int(left_ms) => Some(*left_ms),
        _ => return None,
    };
    match (verb, &replies[0]) {
        (Verb::Acquire, reply) if is_ok(reply) => Some(Answer::Done),
        (Verb::Acquire, Reply::Nil) => Some(Answer::Foreign { left_ms }),
        (Verb::Inspect, Reply::Bulk(value)) => Some(match left_ms {
            None | Some(0..) if value.is_empty() => Answer::Absent,
            _ => Answer::Found { value: value.clone(), left_ms: left_ms.unwrap_or(0) },
        }),
        _ => None,
    }
}
