//! The words about a status, for any integer.

use std::ffi::CStr;

use redlock::ffi::status::{RedLockStatus_IsRetriable, RedLockStatus_Name};

use crate::declarations::header;

#[test]
fn every_status_and_nothing_else_has_a_name() {
    let declared = declared();
    assert_eq!(declared.len(), 12);
    for (name, value) in &declared {
        assert_eq!(name_of(*value), *name);
    }
    let edges = [i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX];
    for value in (-1000..1000).chain(edges) {
        if declared.iter().all(|it| it.1 != value) {
            assert_eq!(name_of(value), "REDLOCK_UNKNOWN_STATUS", "{value}");
        }
    }
}

#[test]
fn only_temporary_statuses_are_retriable() {
    let retriable = ["REDLOCK_TAKEN", "REDLOCK_UNREACHABLE", "REDLOCK_TOO_SLOW"];
    let edges = [i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX];
    for value in (-1000..1000).chain(edges) {
        let expected = retriable.contains(&name_of(value).as_str());
        assert_eq!(RedLockStatus_IsRetriable(value), expected, "{value}");
    }
}

fn name_of(status: i32) -> String {
    // SAFETY: the function takes any integer, and its string lives for ever.
    let name = unsafe { CStr::from_ptr(RedLockStatus_Name(status)) };
    name.to_str().expect("UTF-8").to_owned()
}

/// The enumerators of the header.
fn declared() -> Vec<(String, i32)> {
    let enumerator = |line: &str| {
        let (name, value) = line.trim().strip_suffix(',')?.split_once(" = ")?;
        name.starts_with("REDLOCK_").then_some((name.to_owned(), value.parse().ok()?))
    };
    header().lines().filter_map(enumerator).collect()
}
