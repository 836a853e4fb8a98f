//! What was seen in the runs of a test. A test in which nothing is seen shows nothing.

use std::fmt::Debug;

#[cfg(not(test))]
pub(crate) fn note(_what: &impl Debug) {}

#[cfg(test)]
thread_local! {
    static SEEN: std::cell::RefCell<std::collections::BTreeSet<String>> = Default::default();
}

/// Notes the kind of a value, without its contents.
#[cfg(test)]
pub(crate) fn note(what: &impl Debug) {
    let words = format!("{what:?}");
    let kind = words.split([' ', '(']).next().unwrap_or_default().to_owned();
    SEEN.with_borrow_mut(|it| it.insert(kind));
}

/// Everything that was noted on this thread.
#[cfg(test)]
pub(crate) fn all() -> Vec<String> {
    SEEN.with_borrow(|it| it.iter().cloned().collect())
}
