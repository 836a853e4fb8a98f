//! `redlock unlock --force`: ends the lock of another program, which may be dead, or may still work.
//!
//! Only the tokens that were shown are deleted, never that of a successor. A repair that the holder has sent before
//! may still arrive: the deletion is repeated until nothing of the lock is found any more.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use redis::{Connection, RedisResult, Value, cmd, from_redis_value};
use redlock::Options;
use serde_json::json;

use crate::cli::{Common, Unlock};
use crate::failure::{Failure, Kind};
use crate::inspect::left_words;
use crate::output;
use crate::servers::Servers;
use crate::survey::Survey;
use crate::table::Table;

const HOLDERS: &str = include_str!("holders.lua");
const END: &str = include_str!("end.lua");

/// The pause between two deletions: longer than a request of the holder is usually on its way.
const PAUSE: Duration = Duration::from_millis(250);

/// The maximum number of deletions. Somebody who sets the key again and again is not a holder that repairs its lock.
const DELETIONS_MAX: u32 = 20;

/// The TTL of the lock that is taken for a moment to wake a waiter.
const MOMENT: Duration = Duration::from_secs(1);

const WARNING: &str =
    "the holder works on until its next renewal fails: stop it first, or use fencing tokens";

type Token = Vec<u8>;

/// A token under a key of one server, with the remaining milliseconds, or -1 without an end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    key: String,
    token: Token,
    left_ms: i64,
}

/// What one server has under all keys of the lock. `None`: the server did not answer.
type OfServer = Option<Vec<Held>>;

/// The lock as the servers have it, and whose lock is to be ended.
struct Look {
    of_servers: Vec<OfServer>,
    /// The tokens to delete.
    holders: Vec<Token>,
    /// Whether a quorum has the first of them.
    is_held: bool,
}

pub(crate) fn unlock(common: &Common, options: &Unlock) -> Result<ExitCode, Failure> {
    let servers = Servers::find(common)?;
    let mut survey = Survey::open(common, &servers)?;
    let keys = keys(&options.name, options.permits);
    let look = look(&mut survey, &keys)?;
    if look.holders.is_empty() {
        return told(common, &options.name, &survey, 0, true);
    }
    if !options.yes {
        ask(common, &options.name, &survey, &look)?;
    }
    end(&mut survey, &keys, &look.holders)?;
    let is_free = self::look(&mut survey, &keys)?.holders.is_empty();
    wake(common, &servers, &mut survey, options)?;
    told(common, &options.name, &survey, look.holders.len(), is_free)
}

/// The keys of the lock: one, or one for each permit of a semaphore.
fn keys(name: &str, permits: Option<u16>) -> Vec<String> {
    let others = 1..permits.unwrap_or(1);
    [name.to_owned()].into_iter().chain(others.map(|it| format!("{name}#{it}"))).collect()
}

/// Finds whose lock is to be ended. What fewer servers than a quorum have may be a lock that is being taken just now:
/// therefore a second look must find it, too.
fn look(survey: &mut Survey, keys: &[String]) -> Result<Look, Failure> {
    let quorum = survey.quorum();
    let before = read(survey, keys)?;
    let is_clear = all_tokens(&before).is_empty() || !on_a_quorum(&before, quorum).is_empty();
    if is_clear {
        return Ok(Look::at(before, None, quorum));
    }
    thread::sleep(PAUSE * 4);
    let after = read(survey, keys)?;
    Ok(Look::at(after, Some(&before), quorum))
}

impl Look {
    /// The holders are all whom a quorum has. If there are none: what was on fewer servers before, and still is.
    fn at(of_servers: Vec<OfServer>, before: Option<&[OfServer]>, quorum: usize) -> Self {
        let holders = on_a_quorum(&of_servers, quorum);
        if let (true, Some(before)) = (holders.is_empty(), before) {
            let stayed = all_tokens(&of_servers);
            let holders = stayed.intersection(&all_tokens(before)).cloned().collect();
            return Self { of_servers, holders, is_held: false };
        }
        Self { of_servers, holders, is_held: true }
    }
}

fn all_tokens(of_servers: &[OfServer]) -> BTreeSet<Token> {
    of_servers.iter().flatten().flatten().map(|it| it.token.clone()).collect()
}

/// The tokens that a quorum has under one key.
fn on_a_quorum(of_servers: &[OfServer], quorum: usize) -> Vec<Token> {
    let all: Vec<&Held> = of_servers.iter().flatten().flatten().collect();
    let count =
        |held: &Held| all.iter().filter(|it| it.token == held.token && it.key == held.key).count();
    let held: BTreeSet<Token> =
        all.iter().filter(|it| count(it) >= quorum).map(|it| it.token.clone()).collect();
    held.into_iter().collect()
}

fn read(survey: &mut Survey, keys: &[String]) -> Result<Vec<OfServer>, Failure> {
    let answers = survey.ask_each(|connection, of_all| {
        keys.iter().map(|key| holders(connection, of_all, key)).collect::<RedisResult<Vec<_>>>()
    })?;
    let named = survey.names().zip(&answers);
    for (name, found) in named.filter_map(|(name, it)| Some((name, it.as_ref()?))) {
        if let Some((kind, key)) =
            found.iter().zip(keys).find_map(|(it, key)| Some((it.as_ref().err()?, key)))
        {
            let words = format!("{key} is a {kind} on {name}, not a lock: nothing was changed");
            return Err(Failure::usage(words));
        }
    }
    let flat =
        |of_keys: Vec<Result<Vec<Held>, String>>| of_keys.into_iter().flatten().flatten().collect();
    Ok(answers.into_iter().map(|it| it.map(flat)).collect())
}

/// The holders of one key, or the type of the key if that is not the type of a lock.
fn holders(
    connection: &mut Connection,
    of_all: &str,
    key: &str,
) -> RedisResult<Result<Vec<Held>, String>> {
    let mut request = cmd("EVAL");
    request.arg(HOLDERS).arg(2).arg(format!("{of_all}{key}")).arg(format!("{of_all}{key}:r"));
    let answer: Value = request.query(connection)?;
    if matches!(answer, Value::BulkString(_) | Value::SimpleString(_)) {
        return Ok(Err(from_redis_value(answer)?));
    }
    let found: Vec<(Token, i64)> = from_redis_value(answer)?;
    let held = |(token, left_ms)| Held { key: key.to_owned(), token, left_ms };
    Ok(Ok(found.into_iter().map(held).collect()))
}

/// Shows what was found, and asks whether to go on.
fn ask(common: &Common, name: &str, survey: &Survey, look: &Look) -> Result<(), Failure> {
    let input = io::stdin();
    if common.json || !input.is_terminal() {
        return Err(Failure::usage("there is nobody to ask whether to end the lock: add --yes"));
    }
    let words = question(name, survey.names(), survey.quorum(), look);
    output::print(words)?;
    let mut answer = String::new();
    let _ = input.lock().read_line(&mut answer);
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::new(Kind::Declined, "nothing was changed"))
}

fn question<'a>(
    name: &str,
    servers: impl Iterator<Item = &'a str>,
    quorum: usize,
    look: &Look,
) -> String {
    let mut table = Table::new(["SERVER", "KEY", "HOLDER", "LEFT"]);
    for (server, held) in servers.zip(&look.of_servers) {
        let row = |key: &str, holder: String, left: String| {
            [server.to_owned(), key.to_owned(), holder, left]
        };
        match held {
            None => table.row(row("", "does not answer".to_owned(), String::new())),
            Some(held) if held.is_empty() => table.row(row("", "-".to_owned(), String::new())),
            Some(held) => held.iter().for_each(|it| {
                let left = u64::try_from(it.left_ms).ok().map(Duration::from_millis);
                table.row(row(&it.key, holder_words(&look.holders, &it.token), left_words(left)));
            }),
        }
    }
    let state = match (look.is_held, look.holders.len()) {
        (true, 1) => format!("{} is locked", name),
        (true, count) => format!("{name} is locked by {count} holders"),
        (false, _) => {
            format!("{name} is not locked, but fewer than {quorum} servers have a key of it")
        }
    };
    let name = output::harmless(&state);
    let asked = "End it? [y/N] ";
    format!("{table}{name}: {WARNING}\n{asked}")
}

/// Tokens are secret. Each holder has a number instead.
fn holder_words(holders: &[Token], token: &Token) -> String {
    let number = holders.iter().position(|it| it == token);
    number.map_or_else(|| "another".to_owned(), |it| format!("holder {}", it + 1))
}

/// Deletes the tokens everywhere until two deletions in a row find nothing.
fn end(survey: &mut Survey, keys: &[String], tokens: &[Token]) -> Result<(), Failure> {
    repeat(PAUSE, || {
        let ended = survey.ask_each(|connection, of_all| {
            let keys = keys.iter().map(|key| format!("{of_all}{key}"));
            keys.map(|key| end_on(connection, &key, tokens)).sum::<RedisResult<usize>>()
        })?;
        Ok(ended.into_iter().flatten().sum())
    })
}

fn repeat(
    pause: Duration,
    mut delete: impl FnMut() -> Result<usize, Failure>,
) -> Result<(), Failure> {
    let mut in_vain = 0;
    for _ in 0..DELETIONS_MAX {
        in_vain = if delete()? == 0 { in_vain + 1 } else { 0 };
        if in_vain == 2 {
            return Ok(());
        }
        thread::sleep(pause);
    }
    let words = "the lock comes back each time it is deleted: stop the program that sets it";
    Err(Failure::new(Kind::Taken, words))
}

fn end_on(connection: &mut Connection, key: &str, tokens: &[Token]) -> RedisResult<usize> {
    let mut request = cmd("EVAL");
    request.arg(END).arg(2).arg(key).arg(format!("{key}:r")).arg(tokens).query(connection)
}

/// If clients wait for the lock, takes and releases it: a release wakes the first of them. If somebody else is faster,
/// that one wakes the next.
fn wake(
    common: &Common,
    servers: &Servers,
    survey: &mut Survey,
    options: &Unlock,
) -> Result<(), Failure> {
    let queue = format!("{}:w", options.name);
    let waiting = survey.ask_each(|connection, of_all| {
        cmd("EXISTS").arg(format!("{of_all}{queue}")).query::<bool>(connection)
    })?;
    if !waiting.into_iter().flatten().any(|it| it) {
        return Ok(());
    }
    let manager = servers.builder(common)?.build()?;
    let mut wanted = Options::new(options.name.as_str(), MOMENT);
    if let Some(permits) = options.permits {
        wanted = wanted.permit_of(permits);
    }
    let _ = manager.acquire(&wanted).and_then(|mut lease| lease.unlock());
    Ok(())
}

/// Reports the result.
fn told(
    common: &Common,
    name: &str,
    survey: &Survey,
    ended: usize,
    is_free: bool,
) -> Result<ExitCode, Failure> {
    let silent: Vec<(&str, &str)> = survey.silent().collect();
    if common.json {
        let unreached: Vec<&str> = silent.iter().map(|it| it.0).collect();
        let line = json!({"name": name, "ended": ended, "free": is_free, "unreached": unreached});
        output::print_line(line)?;
        return Ok(ExitCode::SUCCESS);
    }
    let words = match (ended, is_free) {
        (0, _) => "was not locked: nothing was changed",
        (_, true) => "is unlocked",
        (_, false) => "was unlocked, and another client holds it now",
    };
    output::print_line(format_args!("{} {words}", output::harmless(name)))?;
    for (server, why) in silent {
        output::tell_words(&format!(
            "{server} {why}: if the lock is there, it stays until its TTL ends, or its holder notices the loss"
        ));
    }
    let _ = io::stdout().flush();
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(key: &str, token: &str) -> Held {
        Held { key: key.to_owned(), token: token.into(), left_ms: 1000 }
    }

    #[test]
    fn a_permit_has_a_key_of_its_own() {
        assert_eq!(keys("api", None), ["api"]);
        assert_eq!(keys("api", Some(3)), ["api", "api#1", "api#2"]);
    }

    #[test]
    fn a_holder_has_one_key_on_a_quorum() {
        let two = |token| vec![held("r", token), held("r#1", "b")];
        let of_servers =
            [Some(two("a")), None, Some(two("a")), Some(two("c")), Some(vec![held("r#2", "c")])];
        assert_eq!(on_a_quorum(&of_servers, 3), [b"b".to_vec()]);
        assert_eq!(on_a_quorum(&of_servers, 2), [b"a".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn a_lock_that_is_being_taken_is_not_left_behind() {
        let on = |tokens: &[&str]| -> Vec<OfServer> {
            tokens.iter().map(|it| Some(vec![held("r", it)])).collect()
        };
        let look = |before: &[&str], after: &[&str]| {
            let look = Look::at(on(after), Some(&on(before)), 2);
            (look.holders, look.is_held)
        };
        let token = |it: &str| vec![it.as_bytes().to_vec()];
        assert_eq!(look(&["a", "b", "c"], &["d", "b", "e"]), (token("b"), false));
        assert_eq!(look(&["a"], &["b"]), (Vec::new(), false));
        assert_eq!(look(&["a"], &["a", "a"]), (token("a"), true));
        assert_eq!(look(&["a"], &["b", "b", "a"]), (token("b"), true));
    }

    #[test]
    fn a_lock_that_comes_back_is_deleted_again() {
        let mut found = [3, 0, 1, 0, 0, 7].into_iter();
        repeat(Duration::ZERO, || Ok(found.next().unwrap_or(0))).expect("it ends");
        assert_eq!(found.next(), Some(7));
        assert_eq!(repeat(Duration::ZERO, || Ok(1)).expect_err("it never ends").kind, Kind::Taken);
    }

    #[test]
    fn the_question_shows_holders_without_their_tokens() {
        let look = Look {
            of_servers: vec![
                Some(vec![held("r", "secret"), held("r", "other")]),
                None,
                Some(Vec::new()),
            ],
            holders: vec![b"secret".to_vec()],
            is_held: true,
        };
        let words = question("r", ["a:1", "b:2", "c:3"].into_iter(), 2, &look);
        for part in [
            "a:1     r    holder 1",
            "another",
            "b:2          does not answer",
            "r is locked: the holder works on",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(!words.contains("secret"), "{words}");
    }
}
