//! How Prometheus and Grafana read the statistics.

use std::io::Write;
use std::process::{Command, Stdio};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN};

use crate::library;
use crate::support::{Cluster, Lease};

const TTL: i64 = 600_000;

/// A Python that has Prometheus's parser.
fn python_with_parser() -> Option<&'static str> {
    ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let check = ["-c", "import prometheus_client.parser"];
        let run = Command::new(python).args(check).stderr(Stdio::null()).status();
        run.is_ok_and(|status| status.success())
    })
}

/// With servers that are up and one that is down, after a lock, a refusal and a wait.
fn text() -> String {
    let cluster = Cluster::start(3);
    let (manager, rival) = (cluster.manager(), cluster.manager());
    let (lease, other) = (Lease::new(), Lease::new());
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(rival.try_lock("r", TTL, 20, &other), REDLOCK_TAKEN);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster[2].kill();
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    manager.stats_text()
}

fn check(python: &str, options: &[&str], text: &str) {
    let root = library::root();
    let mut command = Command::new(python);
    command.args(["-W", "error", "-B"]).arg(root.join("bindings/python/tests/gauges.py"));
    command.arg(root.join("packaging/grafana/redlock.json")).args(options);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("python3");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    let run = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && run.stdout.starts_with(b"checked"), "{said}");
}

#[test]
fn the_dashboard_matches_the_written_metrics() {
    check("python3", &["--without-parser"], &text());
}

#[test]
fn prometheus_reads_the_text() {
    match python_with_parser() {
        Some(python) => check(python, &[], &text()),
        // Printed, because the test proves nothing then.
        None => {
            println!("left out: there is no prometheus_client (Debian: python3-prometheus-client)")
        }
    }
}

#[test]
fn an_unknown_metric_in_the_dashboard_is_found() {
    let text = text();
    for (from, to) in
        [("redlock_lock_waits_total", "redlock_lock_wait_total"), ("outcome=", "result=")]
    {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let run = std::panic::catch_unwind(|| check("python3", &["--without-parser"], &changed));
        assert!(run.is_err(), "{from}");
    }
}
