//! `redlock status`: shows who holds a lock.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;

use crate::cli::Common;
use crate::failure::Failure;
use crate::output;
use crate::servers::Servers;
use crate::table::Table;
use crate::time;

pub(crate) fn status(common: &Common, names: &[String]) -> Result<ExitCode, Failure> {
    let manager = Servers::find(common)?.builder(common)?.build()?;
    let mut table = Table::new(["NAME", "LOCKED", "LEFT"]);
    let mut told = Vec::new();
    for name in names {
        let holder = manager.inspect(name)?;
        let left = holder.map(|it| it.left);
        let left_ms = left.flatten().map(|it| it.as_millis());
        let readers = holder.and_then(|it| it.readers);
        told.push(json!({"name": name, "locked": holder.is_some(), "left_ms": left_ms, "readers": readers}));
        let locked = match (holder, readers) {
            (None, _) => "no".to_owned(),
            (_, None) => "yes".to_owned(),
            (_, Some(1)) => "by 1 reader".to_owned(),
            (_, Some(readers)) => format!("by {readers} readers"),
        };
        table.row([name.clone(), locked, left.map(left_words).unwrap_or_default()]);
    }
    if common.json {
        output::print_line(json!(told))?;
    } else {
        output::print(table)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// For how long a lock still exists.
pub(crate) fn left_words(left: Option<Duration>) -> String {
    left.map_or_else(|| "for ever".to_owned(), time::short)
}
