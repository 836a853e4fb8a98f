//! What a client must conclude from one connection: which reply belongs to which request, the answer to the
//! request, and whether the connection is still usable after that.

mod answers;
mod commands;

use self::answers::{answer, is_ok, replies_of};
use self::commands::{Command, Question, command};
use crate::hashes::with_text;
use crate::protocol::command::{Answer, Verb};
use crate::protocol::failure::Failure;
use crate::resp::{self, Lack, Reply};
use crate::seen;

/// A request that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Whether it is about two resources at once, or from a reader.
    pub(crate) is_of_several: bool,
    pub(crate) is_of_reader: bool,
    /// Whether the client subscribes to its channel before it, or asks for waiting clients after it.
    pub(crate) subscribes: bool,
    pub(crate) looks: bool,
    /// Whether it asks for the TTL of the key. One of several acquires that go out together may not ask.
    pub(crate) asks_end: bool,
    pub(crate) verb: Verb,
    pub(crate) resource: Vec<u8>,
    pub(crate) token: Vec<u8>,
}

impl Default for Asked {
    fn default() -> Self {
        let (is_of_several, is_of_reader, subscribes, looks, asks_end) = Default::default();
        let (resource, token) = Default::default();
        let verb = Verb::Inspect;
        Self { is_of_several, is_of_reader, subscribes, looks, asks_end, verb, resource, token }
    }
}

/// A request and its answer. A refusal is [`Failure::ProtocolError`] here, whatever its text is.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) asked: Asked,
    pub(crate) answer: Answer,
}

/// One connection, as far as its bytes show.
#[derive(Default)]
pub(crate) struct Judge {
    heard: Vec<u8>,
    said: Vec<u8>,
    /// Commands without a reply.
    owed: Vec<Command>,
    replies: Vec<Reply>,
    pub(crate) end: Option<Lack>,
    /// Whether the last question of the handshake was answered.
    pub(crate) is_up: bool,
    /// Each request that was sent: its resource and its token.
    asked: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether the server was told to use RESP3.
    pub(crate) is_resp3: bool,
    /// Whether the next command follows a subscription.
    subscribes: bool,
    /// Whether the server refuses subscriptions.
    pub(crate) is_unheard: bool,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Judge {
    /// The client sent these bytes.
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        self.heard.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((mut words, length)) = resp::command(&self.heard[at..]) {
            with_text(&mut words);
            at += length;
            match (&*words[0], self.owed.last_mut()) {
                // These commands belong to the next command, or to the previous one.
                (b"SUBSCRIBE", _) => self.subscribes = true,
                (b"EXISTS", Some(Command::Ask(asked))) => asked.looks = true,
                (b"ZCARD", Some(Command::Ask(asked))) => asked.verb = Verb::AcquireAgain,
                (b"PTTL", Some(Command::Ask(asked))) => asked.asks_end = true,
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

    /// The answer to the request about this resource. If the request was sent again, in another form, the
    /// later answer counts.
    pub(crate) fn answer_about(&self, resource: &[u8]) -> Option<Answer> {
        let (_, token) = self.asked.iter().find(|it| it.0 == resource)?;
        let is_it = |it: &(&[u8], &[u8])| *it == (resource, token);
        let asked = self.asked.iter().map(|it| (&*it.0, &*it.1)).filter(is_it).count();
        let mut answers =
            self.verdicts.iter().filter(|it| is_it(&(&it.asked.resource, &it.asked.token)));
        answers.nth(asked - 1).map(|it| it.answer.clone())
    }

    /// Whether the last answer about this resource refused a release.
    pub(crate) fn has_refused_release(&self, resource: &[u8]) -> bool {
        let last = self.verdicts.iter().rfind(|it| it.asked.resource == resource);
        last.is_some_and(|it| {
            let is_release = matches!(it.asked.verb, Verb::Release | Verb::ReleaseAndWake);
            is_release && it.answer == Answer::Failed(Failure::ProtocolError)
        })
    }

    /// Whether the client has asked for a lock with this token, and was not told that it does not have it.
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

    /// The client received these bytes.
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

    /// Whether there is anything from here on other than a push or the beginning of a push.
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

    /// Takes a reply for the first owed command. `has_more` says whether more follows: if there is one
    /// reply too many, none of them is believed.
    fn settle(&mut self, reply: Reply, has_more: bool) {
        let is_right = match self.owed[0].clone() {
            Command::Oath => is_ok(&reply),
            Command::Aside => match &reply {
                // It is a message of its own, and no answer.
                Reply::Push(_) => return,
                reply => matches!(reply, Reply::Int(0 | 1) | Reply::Error(..)),
            },
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

    /// The answer to a request, including the answers to the commands that came with it.
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
            _ if asked.verb == Verb::JoinWaitlist && self.is_unheard => {
                Answer::Failed(Failure::ProtocolError)
            }
            answer => answer,
        })
    }
}

/// Whether the error refuses the whole connection.
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

/// A server that reports nothing of itself is accepted. A server that reports that it is no voter is not.
fn settle_question(question: Question, reply: &Reply) -> bool {
    match (question, reply) {
        (Question::Info { is_program: false } | Question::Setting, Reply::Error(code, words)) => {
            !turns_away(code, words)
        }
        // A server that cannot report this now is asked again later.
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
