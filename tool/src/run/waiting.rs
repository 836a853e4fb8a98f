//! What is told while the command waits for a lock: after a second who is in the way, and again when that is no longer
//! true.

use std::time::Duration;

use redlock::Manager;
use serde_json::json;

use crate::cli::Run;
use crate::inspect::left_words;
use crate::report::Report;
use crate::time::now;

/// How long it waits without a word, and how often it looks then.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Waiting<'a> {
    manager: &'a Manager,
    names: &'a [String],
    permits: Option<u16>,
    report: Report,
    look_at: Duration,
    told: Option<Obstacle>,
    /// Until when that is true at least.
    told_until: Duration,
}

/// Why a lock cannot be had now.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Obstacle {
    Locked {
        name: String,
    },
    Readers {
        name: String,
        count: u64,
    },
    Permits {
        name: String,
        of: u16,
    },
    /// It is free, and somebody else's turn.
    Turn,
    /// Too few servers vote.
    Votes,
    /// Too few servers answer.
    Unknown {
        words: String,
    },
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(manager: &'a Manager, options: &'a Run, report: Report) -> Self {
        let (names, permits) = (&*options.names, options.permits);
        let (look_at, told_until) = (now() + LOOK, Duration::ZERO);
        Self { manager, names, permits, report, look_at, told: None, told_until }
    }

    /// How long there is nothing to tell.
    pub(crate) fn time_to_next_look(&self) -> Duration {
        self.look_at.saturating_sub(now())
    }

    /// Looks who is in the way, if it is time for that, and tells it if it is news. Servers without a vote are told of
    /// at once: nobody can have the lock before they vote.
    pub(crate) fn look(&mut self) {
        let is_due = now() >= self.look_at;
        if !is_due && (self.told.is_some() || !self.is_hopeless()) {
            return;
        }
        let (found, left) = self.find();
        let is_news = self.told.as_ref() != Some(&found) || now() >= self.told_until;
        if is_news {
            self.tell(&found, left);
            self.told_until = left.map_or(Duration::MAX, |left| now() + left);
            self.told = Some(found);
        }
        self.look_at = now() + LOOK;
    }

    /// Whether so many servers are connected and have no vote that the others are no quorum.
    fn is_hopeless(&self) -> bool {
        let servers = self.manager.servers();
        let without = servers.iter().filter(|it| it.is_connected && !it.has_vote).count();
        without * 2 >= servers.len()
    }

    fn has_votes(&self) -> bool {
        let servers = self.manager.servers();
        servers.iter().filter(|it| it.has_vote).count() * 2 > servers.len()
    }

    /// What is in the way, and for how long; none: for ever, or it is not known.
    fn find(&self) -> (Obstacle, Option<Duration>) {
        // Servers without a vote grant, too. Their keys would look like the lock of another client.
        if !self.has_votes() {
            return (Obstacle::Votes, None);
        }
        for name in self.names {
            match self.find_of(name) {
                Ok(Some(found)) => return found,
                Ok(None) => {}
                Err(error) => return (Obstacle::Unknown { words: error.to_string() }, None),
            }
        }
        (Obstacle::Turn, None)
    }

    /// Which servers have no vote, and why.
    fn without_votes(&self) -> String {
        let without = self.manager.servers().into_iter().filter(|it| !it.has_vote);
        without.map(|it| format!("{} {}", it.name, it.words)).collect::<Vec<_>>().join(", ")
    }

    fn find_of(&self, name: &str) -> Result<Option<(Obstacle, Option<Duration>)>, redlock::Error> {
        let name_of = || name.to_owned();
        if let Some(of) = self.permits {
            let found = self.manager.inspect_permits(name, of)?;
            let is_full = found.taken >= of;
            return Ok(is_full.then(|| (Obstacle::Permits { name: name_of(), of }, found.left)));
        }
        Ok(self.manager.inspect(name)?.map(|holder| {
            let obstacle = match holder.readers {
                None => Obstacle::Locked { name: name_of() },
                Some(count) => Obstacle::Readers { name: name_of(), count },
            };
            (obstacle, holder.left)
        }))
    }

    fn tell(&self, found: &Obstacle, left: Option<Duration>) {
        let left_ms = left.map(|it| it.as_millis());
        let rest = left_words(left);
        let words = match found {
            Obstacle::Locked { name } => {
                format!(
                    "waiting for {name}: it is locked for another {rest}, unless that is extended"
                )
            }
            Obstacle::Readers { name, count: 1 } => {
                format!("waiting for {name}: 1 reader has it for another {rest}")
            }
            Obstacle::Readers { name, count } => {
                format!("waiting for {name}: {count} readers have it, the first for another {rest}")
            }
            Obstacle::Permits { name, of } => format!(
                "waiting for {name}: all {of} permits are taken, the first of them for another {rest}"
            ),
            Obstacle::Turn => "waiting: it is free, and somebody else's turn".to_owned(),
            Obstacle::Votes => format!("waiting: too few servers vote: {}", self.without_votes()),
            Obstacle::Unknown { words } => format!("waiting: {words}"),
        };
        self.report.warn(&words, &json!({"event": "waiting", "words": words, "left_ms": left_ms}));
    }
}
