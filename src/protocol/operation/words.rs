//! The words for why another operation of this process comes first.

use crate::protocol::error::{Error, Status};
use crate::protocol::wait_queue::Permission;

/// The error of an acquire that may not ask the servers. The text is made only when a caller reads it, because
/// thousands of operations may wait.
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
        0 => "held by another lease".to_owned(),
        _ => format!("held shared by {readers} leases"),
    };
    let words = format!("{what}{through} of this manager ({left_ms} ms left)");
    Error::new(Status::Taken, words)
}

fn others_first(what: &str) -> Error {
    let words = format!("other callers in this process are ahead in the queue for {what}");
    Error::new(Status::Taken, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::command::NthKey;

    #[test]
    fn a_refusal_says_who_came_first_and_where() {
        let place = NthKey { nth: 2, of: 3 };
        let told = |permission| came_first(permission).to_string();
        let held = |readers| told(Permission::Held { left_ms: 7, readers });
        assert_eq!(held(0), "held by another lease of this manager (7 ms left)");
        assert_eq!(held(2), "held shared by 2 leases of this manager (7 ms left)");
        let words = "other callers in this process are ahead in the queue for the resource";
        assert_eq!(told(Permission::NotYet), words);
        let words = "resource 2 of 3 held by another lease of this manager (7 ms left)";
        assert_eq!(told(Permission::Blocked { place, left_ms: Some(7) }), words);
        let words = "other callers in this process are ahead in the queue for resource 2 of 3";
        assert_eq!(told(Permission::Blocked { place, left_ms: None }), words);
        assert_eq!(came_first(Permission::NotYet).status(), Status::Taken);
    }
}
