//! What came to pass in the runs of a test: one in which nothing does shows nothing.

use std::fmt::Debug;

#[cfg(not(test))]
pub(crate) fn note(_what: &impl Debug) {}

#[cfg(test)]
thread_local! {
    static SEEN: std::cell::RefCell<std::collections::BTreeSet<String>> = Default::default();
}

/// Notes what it is, without what is in it.
#[cfg(test)]
pub(crate) fn note(what: &impl Debug) {
    let words = format!("{what:?}");
    let kind = words.split([' ', '(']).next().unwrap_or_default().to_owned();
    SEEN.with_borrow_mut(|it| it.insert(kind));
}

/// All that was noted on this thread.
#[cfg(test)]
pub(crate) fn all() -> Vec<String> {
    SEEN.with_borrow(|it| it.iter().cloned().collect())
}
