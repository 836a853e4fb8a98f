//! Why somebody of this process comes first.

use crate::error::{Error, Status};
use crate::wait_queue::Permission;

/// What is told of an acquire that may not ask the servers. The words are made only for who reads them: thousands may wait.
pub(super) fn came_first(permission: Permission) -> Error {
    match permission {
        Permission::Held { left_ms, readers } => held_here("", left_ms, readers),
        Permission::Blocked { place, left_ms: Some(left_ms) } => {
            held_here(&format!("{place} "), left_ms, 0)
        }
        Permission::Blocked { place, left_ms: None } => others_first(&place.to_string()),
        Permission::NotYet | Permission::MayAsk => others_first("the resource"),
    }
}

fn held_here(what: &str, left_ms: i64, readers: usize) -> Error {
    let through = match readers {
        0 => "held through another lease".to_owned(),
        _ => format!("held shared through {readers} leases"),
    };
    let words = format!("{what}{through} of this manager ({left_ms} ms left)");
    Error::new(Status::Taken, words)
}

fn others_first(what: &str) -> Error {
    let words = format!("others of this process want {what}, too, and came first");
    Error::new(Status::Taken, words)
}
