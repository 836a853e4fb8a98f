//! The requests of a waiter while nothing changes.

use std::path::Path;
use std::time::Duration;

use super::Outcome;
use super::contenders::Contenders;
use super::figures::Figures;
use super::servers::{Request, Servers, Watched};
use super::talk::Talk;

const SERVERS: usize = 5;
const KEY: &str = "bench:waiting";
const WAIT: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(20);

/// In seconds. Requests at the beginning and at the end of the wait do not count as waiting.
const BEGIN: f64 = 1.0;
const END: f64 = 9.5;

/// Words that appear only in the request that asks whether the resource is free, and for a place in the queue:
/// the text of its script, or, after the hash of that script, the channel on which the waiter is woken.
const LOOKS: [[&str; 2]; 2] = [["EVAL", "ZRANK"], ["EVALSHA", "redlock:w:"]];

pub(crate) struct Waiting {
    /// Requests to the server that received the most.
    pub(crate) most: f64,
    /// Requests that are not part of such a look.
    pub(crate) others: f64,
    /// The most requests of a waiter that is not told of releases.
    pub(crate) silent: f64,
}

/// Measures two waiters at the same time, each on servers of its own.
pub(crate) fn measure(contenders: &Contenders, dir: &Path) -> Outcome<Waiting> {
    let servers = [Servers::start(SERVERS, dir)?, Servers::start(SERVERS, dir)?];
    let mut woken = Waiter::begin(&[], contenders, &servers[0])?;
    let mut silent = Waiter::begin(&["--silent"], contenders, &servers[1])?;
    woken.talk.say("go")?;
    silent.talk.say("go")?;
    let (woken, silent) = (woken.end()?, silent.end()?);
    let most = |it: &[Vec<Request>]| it.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let others = woken.iter().map(|it| others(it)).sum::<usize>() as f64;
    Ok(Waiting { most: most(&woken), others, silent: most(&silent) })
}

fn others(requests: &[Request]) -> usize {
    let begin = requests.first().map_or(0.0, |it| it.at);
    let waits = |it: &&Request| (BEGIN..END).contains(&(it.at - begin));
    let looks =
        |it: &Request| LOOKS.iter().any(|parts| parts.iter().all(|part| it.words.contains(part)));
    requests.iter().filter(waits).filter(|it| !looks(it)).count()
}

struct Waiter {
    talk: Talk,
    watched: Vec<Watched>,
}

impl Waiter {
    /// Connects the waiter. From now on, its requests are watched.
    fn begin(options: &[&str], contenders: &Contenders, servers: &Servers) -> Outcome<Self> {
        servers.occupy(KEY, 1)?;
        let mut command = contenders.with_library("waiter");
        command.args(options).arg(format!("{KEY}:0")).arg(WAIT.as_millis().to_string());
        let mut talk = Talk::begin(command.args(servers.ports()))?;
        talk.expect("ready", PATIENCE)?;
        let watched = (0..SERVERS).map(|it| servers.watch(it)).collect::<Outcome<_>>()?;
        Ok(Self { talk, watched })
    }

    fn end(mut self) -> Outcome<Vec<Vec<Request>>> {
        if Figures::parse(&self.talk.hear(WAIT + PATIENCE)?)?.get("taken") < 1.0 {
            return Err("a waiter did not wait in vain".into());
        }
        self.watched.into_iter().map(Watched::end).collect()
    }
}
