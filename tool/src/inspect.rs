//! `redlock status`: shows who holds a lock.

use std::process::ExitCode;
use std::time::Duration;

use redlock::{Error, Manager};
use serde_json::{Value, json};

use crate::cli::Common;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::servers::Servers;
use crate::table::Table;
use crate::time;

/// What the servers have under a name.
struct Seen {
    is_locked: bool,
    words: String,
    left: String,
    json: Value,
}

pub(crate) fn status(
    common: &Common,
    names: &[String],
    permits: Option<u16>,
) -> Result<ExitCode, Failure> {
    let manager = Servers::find(common)?.builder(common)?.build()?;
    let look = |name: &String| match permits {
        None => look(&manager, name),
        Some(of) => look_at_permits(&manager, name, of),
    };
    let seen = names.iter().map(look).collect::<Result<Vec<_>, _>>()?;
    let is_locked = seen.iter().any(|it| it.is_locked);
    if common.json {
        let told = seen.into_iter().map(|it| it.json).collect::<Vec<_>>();
        output::print_line(json!(told))?;
    } else {
        let mut table = Table::new(["NAME", "LOCKED", "LEFT"]);
        for (name, it) in names.iter().zip(seen) {
            table.row([name.clone(), it.words, it.left]);
        }
        output::print(table)?;
    }
    // The same status as that of `run` if it does not wait.
    Ok(if is_locked { Kind::Taken.into() } else { ExitCode::SUCCESS })
}

fn look(manager: &Manager, name: &str) -> Result<Seen, Error> {
    let holder = manager.inspect(name)?;
    let left = holder.map(|it| it.left);
    let left_ms = left.flatten().map(|it| it.as_millis());
    let readers = holder.and_then(|it| it.readers);
    let words = match (holder, readers) {
        (None, _) => "no".to_owned(),
        (_, None) => "yes".to_owned(),
        (_, Some(1)) => "by 1 reader".to_owned(),
        (_, Some(readers)) => format!("by {readers} readers"),
    };
    let (is_locked, left) = (holder.is_some(), left.map(left_words).unwrap_or_default());
    let json = json!({"name": name, "locked": is_locked, "left_ms": left_ms, "readers": readers});
    Ok(Seen { is_locked, words, left, json })
}

fn look_at_permits(manager: &Manager, name: &str, of: u16) -> Result<Seen, Error> {
    let found = manager.inspect_permits(name, of)?;
    let (taken, is_locked) = (found.taken, found.taken >= of);
    let left_ms = found.left.map(|it| it.as_millis());
    let json = json!({"name": name, "locked": is_locked, "left_ms": left_ms, "taken": taken, "permits": of});
    let left = if taken > 0 { left_words(found.left) } else { String::new() };
    Ok(Seen { is_locked, words: format!("{taken} of {of}"), left, json })
}

/// For how long a lock still exists.
pub(crate) fn left_words(left: Option<Duration>) -> String {
    left.map_or_else(|| "no expiry".to_owned(), time::short)
}
