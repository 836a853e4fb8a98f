//! Waiting for something to become so, and for something to end.

use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{panic, thread};

/// Far more than anything here takes, also on a machine that is busy with other work.
const LIMIT: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(3);

/// Returns as soon as `condition` holds. `what` is said when it never does.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_until_ok(what, || if condition() { Ok(()) } else { Err(String::new()) });
}

/// As [`wait_until`] for a condition that can say what it still lacks.
#[track_caller]
pub(crate) fn wait_until_ok(what: &str, mut condition: impl FnMut() -> Result<(), String>) {
    let start = Instant::now();
    while let Err(words) = condition() {
        assert!(start.elapsed() < LIMIT, "waited for {LIMIT:?} in vain: {what} {words}");
        thread::sleep(STEP);
    }
}

/// Runs `body` on a thread of its own and hands on its result, or its panic. A body that hangs
/// fails the test instead of hanging it.
#[track_caller]
pub(crate) fn finishes<T: Send + 'static>(
    what: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (done, end) = mpsc::channel();
    let running = thread::spawn(move || {
        let result = body();
        let _ = done.send(());
        result
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(LIMIT) {
        panic!("still running after {LIMIT:?}: {what}");
    }
    running.join().unwrap_or_else(|words| panic::resume_unwind(words))
}
