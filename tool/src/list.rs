//! `redlock list`: lists the locks.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::Common;
use crate::failure::Failure;
use crate::output;
use crate::servers::Servers;
use crate::survey::{Found, Survey};
use crate::table::Table;
use crate::time;

pub(crate) fn list(common: &Common, prefix: &str, all: bool) -> Result<ExitCode, Failure> {
    let servers = Servers::find(common)?;
    let mut survey = Survey::open(common, &servers)?;
    let mut found = survey.locks(prefix)?;
    found.retain(|it| it.is_held || all);
    if common.json {
        output::print_line(json!(found.iter().map(as_json).collect::<Vec<_>>()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["NAME", "LEFT", "SERVERS", "WAITING"]);
    for it in &found {
        let servers =
            if it.is_held { it.servers.to_string() } else { format!("{}, no quorum", it.servers) };
        table.row([name_of(it), time::short(it.left), servers, it.waiters.to_string()]);
    }
    output::print(table)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn name_of(found: &Found) -> String {
    String::from_utf8_lossy(&found.name).into_owned()
}

pub(crate) fn as_json(found: &Found) -> serde_json::Value {
    json!({"name": name_of(found), "held": found.is_held, "left_ms": found.left.as_millis(),
        "servers": found.servers, "waiting": found.waiters})
}
