//! One line of a log: who said what, and when.

use std::fmt;

/// A parsed line.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    /// `CLOCK_BOOTTIME`, in nanoseconds.
    pub(crate) time: i64,
    pub(crate) process: &'a str,
    pub(crate) thread: u32,
    pub(crate) event: Event<'a>,
    pub(crate) file: &'a str,
    pub(crate) number: usize,
    pub(crate) text: &'a str,
}

/// The call of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Lock,
    TryLock,
    /// Takes the resource in shared mode.
    Share,
    /// Turns an exclusive lock into a shared one.
    Downgrade,
    Continue,
    Extend,
    Confirm,
    Unlock,
}

/// The content of a line. The module's documentation describes each event.
#[derive(Clone, Debug)]
pub(crate) enum Event<'a> {
    Begin { parent: Option<&'a str> },
    End,
    Sample(Sample),
    Call(Call<'a>),
    Return(Return<'a>),
    Look { resource: &'a str, token: &'a str, held: bool },
    Writing(Write<'a>),
    Wrote(Write<'a>),
    Abandon(Write<'a>),
    Drop,
    Stop { process: &'a str },
    Cont { process: &'a str },
    Kill { process: &'a str },
    Dead { process: &'a str },
    Fault,
    Healed,
    Listing { settled: i64 },
    Left(Key<'a>),
    Counter { resource: &'a str, value: u64 },
}

impl Event<'_> {
    /// Whether it begins something that has an end of its own.
    pub(crate) fn opens(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Writing(_))
    }

    pub(crate) fn closes(&self) -> bool {
        matches!(self, Self::Return(_) | Self::Wrote(_) | Self::Abandon(_))
    }
}

/// The resources that a process uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) fds: i64,
    pub(crate) threads: i64,
    pub(crate) rss_kb: i64,
}

/// A call that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) op: Op,
    pub(crate) resource: &'a str,
    pub(crate) ttl_ms: i64,
    /// How long it may take according to its timeouts.
    pub(crate) bound_ms: i64,
    /// The token of the lock that it is about, if there is one before the call.
    pub(crate) token: Option<&'a str>,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Return<'a> {
    pub(crate) op: Op,
    pub(crate) resource: &'a str,
    pub(crate) status: &'a str,
    /// What the lease reports after the call.
    pub(crate) held: bool,
    pub(crate) token: Option<&'a str>,
    /// The earliest and the latest possible end of the lock, according to the lease.
    pub(crate) until: Option<(i64, i64)>,
}

/// A change of a counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    pub(crate) resource: &'a str,
    pub(crate) token: &'a str,
    pub(crate) value: u64,
}

/// A key on a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) server: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) token: &'a str,
    pub(crate) pttl_ms: i64,
}

const STATUSES: [&str; 9] = [
    "OK",
    "TAKEN",
    "UNREACHABLE",
    "TOO_SLOW",
    "LOST",
    "INVALID_ARGUMENT",
    "NO_SERVERS",
    "FORKED",
    "INTERNAL",
];

impl Op {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "lock" => Self::Lock,
            "try_lock" => Self::TryLock,
            "share" => Self::Share,
            "downgrade" => Self::Downgrade,
            "continue_lock" => Self::Continue,
            "extend" => Self::Extend,
            "confirm" => Self::Confirm,
            "unlock" => Self::Unlock,
            _ => return Err(format!("there is no call {text}")),
        })
    }

    /// Whether it may set a key anywhere.
    pub(crate) fn sets_keys(self) -> bool {
        !matches!(self, Self::Confirm | Self::Downgrade | Self::Unlock)
    }

    /// Whether it may return with a lock that was not there before.
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Self::Lock | Self::TryLock | Self::Continue)
    }
}

impl<'a> Line<'a> {
    /// Parses a line. Returns an error with the reason if the line is invalid.
    pub(crate) fn parse(file: &'a str, number: usize, text: &'a str) -> Result<Self, String> {
        let mut words = text.split(' ');
        let time = number_of(words.next().unwrap_or_default())?;
        let (process, thread) =
            words.next().and_then(|who| who.split_once(':')).ok_or("it does not say who")?;
        let thread = thread.parse().map_err(|_| format!("{thread} is no thread"))?;
        let event = words.next().ok_or("it does not say what")?;
        let mut fields = Fields::parse(words)?;
        let event = event_of(event, &mut fields)?;
        match fields.0.first() {
            Some((key, _)) => Err(format!("nothing is known of {key}")),
            None if process.is_empty() => Err("it does not say who".to_owned()),
            None => Ok(Self { time, process, thread, event, file, number, text }),
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.log:{}: {}", self.file, self.number, self.text)
    }
}

fn event_of<'a>(event: &str, fields: &mut Fields<'a>) -> Result<Event<'a>, String> {
    Ok(match event {
        "begin" => {
            fields.number("pid")?;
            Event::Begin { parent: fields.optional("parent") }
        }
        "end" => Event::End,
        "sample" => Event::Sample(Sample {
            fds: fields.number("fds")?,
            threads: fields.number("threads")?,
            rss_kb: fields.number("rss_kb")?,
        }),
        "call" => Event::Call(call_of(fields)?),
        "return" => Event::Return(return_of(fields)?),
        "look" => {
            let (resource, token) = (fields.text("resource")?, fields.text("token")?);
            Event::Look { resource, token, held: fields.flag("held")? }
        }
        "writing" => Event::Writing(write_of(fields)?),
        "wrote" => Event::Wrote(write_of(fields)?),
        "abandon" => Event::Abandon(write_of(fields)?),
        "drop" => {
            fields.text("resource")?;
            fields.text("token")?;
            Event::Drop
        }
        "stop" => Event::Stop { process: fields.text("process")? },
        "cont" => Event::Cont { process: fields.text("process")? },
        "kill" => Event::Kill { process: fields.text("process")? },
        "dead" => Event::Dead { process: fields.text("process")? },
        "fault" => {
            fields.text("kind")?;
            fields.text("target")?;
            Event::Fault
        }
        "healed" => Event::Healed,
        "listing" => Event::Listing { settled: fields.number("settled")? },
        "left" => Event::Left(Key {
            server: fields.text("server")?,
            resource: fields.text("resource")?,
            token: fields.text("token")?,
            pttl_ms: fields.number("pttl")?,
        }),
        "counter" => {
            let resource = fields.text("resource")?;
            Event::Counter { resource, value: fields.natural("value")? }
        }
        _ => return Err(format!("nothing is known of {event}")),
    })
}

fn call_of<'a>(fields: &mut Fields<'a>) -> Result<Call<'a>, String> {
    let call = Call {
        op: Op::parse(fields.text("op")?)?,
        resource: fields.text("resource")?,
        ttl_ms: fields.optional("ttl").map_or(Ok(0), number_of)?,
        bound_ms: fields.number("bound")?,
        token: fields.optional("token"),
    };
    match call {
        Call { op, ttl_ms: 0, .. } if op.sets_keys() => Err("it has no TTL".to_owned()),
        _ => Ok(call),
    }
}

fn return_of<'a>(fields: &mut Fields<'a>) -> Result<Return<'a>, String> {
    let op = Op::parse(fields.text("op")?)?;
    let resource = fields.text("resource")?;
    let status = fields.text("status")?;
    let (held, token) = (fields.flag("held")?, fields.optional("token"));
    let until = match (fields.optional("until"), fields.optional("until_max")) {
        (Some(least), Some(most)) => Some((number_of(least)?, number_of(most)?)),
        (None, None) => None,
        _ => return Err("until and until_max come together".to_owned()),
    };
    if !STATUSES.contains(&status) {
        return Err(format!("there is no status {status}"));
    }
    let has_all = token.is_some() && until.is_some();
    if status == "OK" && op.sets_keys() && !has_all {
        return Err("it does not tell which lock this is, or until when".to_owned());
    }
    Ok(Return { op, resource, status, held, token, until })
}

fn write_of<'a>(fields: &mut Fields<'a>) -> Result<Write<'a>, String> {
    let (resource, token) = (fields.text("resource")?, fields.text("token")?);
    Ok(Write { resource, token, value: fields.natural("value")? })
}

/// The `key=value` words of a line that were not requested yet.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn parse(words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let pair =
            |word: &'a str| word.split_once('=').ok_or_else(|| format!("{word:?} has no value"));
        let fields: Vec<_> = words.map(pair).collect::<Result<_, _>>()?;
        for (at, (key, value)) in fields.iter().enumerate() {
            if value.is_empty() || fields[..at].iter().any(|it| it.0 == *key) {
                return Err(format!("{key} is empty, or there twice"));
            }
        }
        Ok(Self(fields))
    }

    fn optional(&mut self, key: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|it| it.0 == key)?;
        Some(self.0.swap_remove(at).1)
    }

    fn text(&mut self, key: &str) -> Result<&'a str, String> {
        self.optional(key).ok_or_else(|| format!("it does not tell its {key}"))
    }

    fn number(&mut self, key: &str) -> Result<i64, String> {
        number_of(self.text(key)?)
    }

    fn natural(&mut self, key: &str) -> Result<u64, String> {
        let value = self.number(key)?;
        u64::try_from(value).map_err(|_| format!("{key} is {value}"))
    }

    fn flag(&mut self, key: &str) -> Result<bool, String> {
        match self.text(key)? {
            "0" => Ok(false),
            "1" => Ok(true),
            other => Err(format!("{key} is {other}")),
        }
    }
}

/// Underscores between digits are for readers.
fn number_of(text: &str) -> Result<i64, String> {
    let plain: String = text.chars().filter(|it| *it != '_').collect();
    plain.parse().map_err(|_| format!("{text:?} is no number"))
}
