//! The guard around every call of a C program.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::protocol::error::{Error, Status};
use crate::system::cancellation::Uncancelled;

/// Runs `body` and turns a panic into an error. Nothing unwinds into C. A thread that is cancelled does not
/// unwind out of a system call. Nothing is printed.
pub(super) fn guard<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let _uncancelled = Uncancelled::new();
    catch(body)
}

/// The same for a caller that has already deferred cancellation of the thread.
pub(super) fn catch<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    silence_panics_of_ours();
    let outer = GUARDED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(body));
    GUARDED.set(outer);
    outcome.unwrap_or_else(|panic| Err(Error::new(Status::Internal, panic_words(&*panic))))
}

thread_local! {
    /// Whether this thread is inside [`catch`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the panic hook quiet for panics that [`catch`] catches. Other panics go to the previous hook, which
/// in a Rust program is the hook of the program.
fn silence_panics_of_ours() {
    // Not a `Once`: a child that was forked while another thread runs it would wait forever.
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Relaxed) || DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !GUARDED.get() {
            before(info);
        }
    }));
}

/// Quotes only messages that are constants of a program. A formatted message may quote what a caller passed.
fn panic_words(panic: &(dyn Any + Send)) -> String {
    match panic.downcast_ref::<&str>() {
        Some(words) => format!("the library panicked: {words}"),
        None => "the library panicked".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A callback of the program may call the library.
    #[test]
    fn a_call_stays_guarded_after_a_nested_call() {
        let is_guarded = guard(|| {
            guard(|| Ok(()))?;
            Ok(GUARDED.get())
        });
        assert_eq!((is_guarded, GUARDED.get()), (Ok(true), false));
    }

    #[test]
    fn a_panic_is_an_internal_error_without_quotes() {
        let passed = String::from("s3cret");
        let sliced = || Err(Error::invalid(&passed[9..]));
        for (outcome, words) in [
            (guard::<()>(|| panic!("drawn")), "the library panicked: drawn"),
            (guard(|| panic!("drawn by {passed}")), "the library panicked"),
            // The message of the standard library also quotes the string.
            (guard(sliced), "the library panicked"),
        ] {
            let error = outcome.unwrap_err();
            assert_eq!(error.status(), Status::Internal);
            assert_eq!(error.to_string(), words);
            assert!(!GUARDED.get());
        }
    }
}
