//! Waiting for something to become so, and for something to end.

use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, panic, thread};

/// Far more than anything here takes, also on a machine that is busy with other work.
const LIMIT: Duration = Duration::from_secs(60);
/// Seconds instead of it, for whoever runs tests that are to fail.
const PATIENCE: &str = "REDLOCK_TEST_PATIENCE";
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
    let limit = limit();
    while let Err(words) = condition() {
        assert!(start.elapsed() < limit, "waited for {limit:?} in vain: {what} {words}");
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
    if let Err(mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(limit()) {
        panic!("still running after {:?}: {what}", limit());
    }
    running.join().unwrap_or_else(|words| panic::resume_unwind(words))
}

fn limit() -> Duration {
    let seconds = env::var(PATIENCE).ok().and_then(|it| it.parse().ok());
    seconds.map_or(LIMIT, Duration::from_secs)
}
