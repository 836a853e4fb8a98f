//! Why somebody of this process comes first.

use crate::error::{Error, Status};

pub(super) fn held_here(what: &str, left_ms: i64, readers: usize) -> Error {
    let through = match readers {
        0 => "held through another lease".to_owned(),
        _ => format!("held shared through {readers} leases"),
    };
    let words = format!("{what}{through} of this manager ({left_ms} ms left)");
    Error::new(Status::Taken, words)
}

pub(super) fn others_first(what: &str) -> Error {
    let words = format!("others of this process want {what}, too, and came first");
    Error::new(Status::Taken, words)
}
