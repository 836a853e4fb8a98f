//! Waits for a condition, and for the end of a function.

use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, panic, thread};

/// Far more than anything here takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Overrides the limit, in seconds, for tests that are expected to fail.
const PATIENCE: &str = "REDLOCK_TEST_PATIENCE";
const STEP: Duration = Duration::from_millis(3);

/// Returns as soon as `condition` holds. If it never does, the test fails with `what`.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_until_ok(what, || if condition() { Ok(()) } else { Err(String::new()) });
}

/// Like [`wait_until`], for a condition that can say what is still missing.
#[track_caller]
pub(crate) fn wait_until_ok(what: &str, mut condition: impl FnMut() -> Result<(), String>) {
    let start = Instant::now();
    let limit = limit();
    while let Err(words) = condition() {
        assert!(start.elapsed() < limit, "waited for {limit:?} in vain: {what} {words}");
        thread::sleep(STEP);
    }
}

/// Runs `body` on a thread of its own and returns its result, or its panic. A body that hangs fails the
/// test instead of hanging it.
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
    if let Err(mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(limit()) {
        panic!("still running after {:?}: {what}", limit());
    }
    running.join().unwrap_or_else(|words| panic::resume_unwind(words))
}

fn limit() -> Duration {
    let seconds = env::var(PATIENCE).ok().and_then(|it| it.parse().ok());
    seconds.map_or(LIMIT, Duration::from_secs)
}
