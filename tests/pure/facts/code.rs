//! Numbers that a page says, and the line of code that makes each of them so. Whoever changes one is told of the other.

use crate::read;

/// A text that stands on a page, and the file and the text of the code that it is about.
type Fact = (&'static str, &'static str, &'static str);

/// docs/ttl.md: how long a call waits by default.
const WAITS: [Fact; 10] = [
    ("`RedLock_Lock`: 3 tries", "src/protocol/policy.rs", "retry_count: AtomicI64::new(3)"),
    ("about 200 ms apart", "src/protocol/policy.rs", "retry_delay_ms: AtomicI64::new(200)"),
    (
        "`lock`: as `RedLock_Lock`",
        "include/redlock.hpp",
        "return RedLock_Lock(rl, text, ttl.count()",
    ),
    ("`try_lock`: 1 try", "include/redlock.hpp", "wait = std::chrono::milliseconds::zero()"),
    ("`Lock`: until its context ends", "bindings/go/lock.go", "how{waits: true}"),
    ("`lock`, `using`: 5 s", "bindings/node/lib/arguments.js", "const WAIT_MS = 5000;"),
    ("`lock`, `alock`: 5 s", "bindings/python/redlock/_arguments.py", "\n_WAIT = 5\n"),
    (
        "`lock`: 5 s",
        "bindings/ruby/lib/redlock/native/manager.rb",
        "def lock(resource, ttl:, wait: 5,",
    ),
    ("`Options::new`: 1 try", "src/face/options.rs", "Wait::For(Duration::ZERO)"),
    ("`redlock run`: 30 s", "tool/src/cli.rs", "default_value = \"30s\""),
];

/// docs/limits.md, from top to bottom.
const LIMITS: [Fact; 62] = [
    ("1 to 65,536 bytes", "src/protocol/check.rs", "const RESOURCE_MAX: usize = 64 * 1024;"),
    ("128 different names", "src/protocol/check.rs", "RESOURCES_MAX: usize = 128;"),
    (
        "times the bytes of the name: 262,144",
        "src/protocol/check.rs",
        "PERMIT_NAMES_MAX: usize = 256 * 1024;",
    ),
    ("| permits of a semaphore | 256;", "src/protocol/slot_set.rs", "SLOTS_MAX: u16 = 256;"),
    (
        "| TTL | ten years;",
        "src/protocol/quorum/validity.rs",
        "TTL_MAX_MS: i64 = 10 * 365 * 24 * 3600 * 1000;",
    ),
    (
        "the drift factor and 2 ms",
        "src/protocol/quorum/validity.rs",
        "EXPIRY_PRECISION_MS: i64 = 2;",
    ),
    (
        "| 0 to less than 1 | 0.01 |",
        "src/protocol/quorum/validity.rs",
        "DEFAULT: Self = Self(0.01);",
    ),
    (
        "128 and four thirds of the name",
        "include/redlock.h",
        "(128 + ((resource_size) + 2) / 3 * 4)",
    ),
    (
        "| levels of a lock that is taken again | 2,147,483,647 |",
        "src/manager/lease.rs",
        "INNER_LEVELS_MAX: u32 = i32::MAX as u32 - 1;",
    ),
    (
        "| tries of `RedLock_Lock` | 1 to 2,147,483,647 | 3 |",
        "src/protocol/policy.rs",
        "retry_count: AtomicI64::new(3)",
    ),
    ("| 200 ms; each pause", "src/protocol/policy.rs", "retry_delay_ms: AtomicI64::new(200)"),
    (
        "looks by itself after 200 ms",
        "src/protocol/quorum/backoff.rs",
        "LOOK: Duration = Duration::from_millis(200);",
    ),
    (
        "after 5 s at the latest",
        "src/protocol/quorum/backoff.rs",
        "LOOK_MAX: Duration = Duration::from_secs(5);",
    ),
    (
        "expires after 15 s without a waiter",
        "src/protocol/command/waking.rs",
        "LINE_TTL_MS: i64 = 15_000;",
    ),
    ("for 200 ms at most,", "src/protocol/wait_queue/queue.rs", "RUN_MS: i64 = 200;"),
    (
        "for 40 ms if other processes",
        "src/protocol/wait_queue/queue.rs",
        "RUN_WITH_RIVALS_MS: i64 = 40;",
    ),
    ("| servers of a manager | 64 |", "src/protocol/quorum/ballot.rs", "SERVERS_MAX: usize = 64;"),
    ("| 16, 128 bytes | port 26379 |", "src/protocol/servers/sentinels.rs", "PORT: u16 = 26_379;"),
    ("| 16, 128 bytes |", "src/protocol/servers/sentinels.rs", "COUNT_MAX: usize = 16;"),
    ("16, 128 bytes |", "src/protocol/servers/sentinels.rs", "NAME_MAX: usize = 128;"),
    ("| 1 ms to a day | 1,500 ms |", "src/protocol/policy.rs", "connect_ms: AtomicI64::new(1_500)"),
    ("to a day |", "src/manager/settings.rs", "TIMEOUT_MAX_MS: i64 = 24 * 3600 * 1000;"),
    (
        "a twentieth of the TTL, 25 ms at least and 500 ms at most",
        "src/protocol/policy.rs",
        "(ttl_ms / 20).clamp(25, 500)",
    ),
    ("| 20 ms at least |", "src/transport/connector.rs", "RETRY_GAP_MS: i64 = 20;"),
    ("is down for 2 s", "src/protocol/conn/addresses.rs", "DOWN_MS: i64 = 2_000;"),
    ("once a second,", "src/protocol/conn/ask_schedule.rs", "REST_MIN_MS: i64 = 1_000;"),
    (
        "every 60 s while it is down",
        "src/protocol/conn/addresses.rs",
        "PAUSE_MAX_MS: i64 = 60_000;",
    ),
    ("| 1,024, or 8 MiB;", "src/protocol/conn/queue.rs", "REQUESTS_MAX: usize = 1024;"),
    ("or 8 MiB;", "src/protocol/conn/queue.rs", "REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;"),
    (
        "16 times and 4 times",
        "src/protocol/conn/queue.rs",
        "REQUIRED_BYTES_MAX: usize = 4 * REQUEST_BYTES_MAX;",
    ),
    (
        "| 128 KiB, 1,024 elements, 4 levels |",
        "src/protocol/conn/reply.rs",
        "LENGTH_MAX: usize = 128 * 1024;",
    ),
    ("1,024 elements", "src/protocol/conn/reply.rs", "ELEMENTS_MAX: usize = 1024;"),
    ("4 levels", "src/protocol/conn/reply.rs", "DEPTH_MAX: usize = 4;"),
    (
        "| 10 s, then the connection",
        "src/system/socket.rs",
        "UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10);",
    ),
    ("| 16,384 bytes with the NUL |", "src/ffi/access.rs", "PASSWORD_ROOM: usize = 16 * 1024;"),
    ("| 16 MiB |", "src/system/files.rs", "FILE_MAX: u64 = 16 * 1024 * 1024;"),
    ("| 3 s at least |", "src/protocol/conn/guard.rs", "LEAST_MS: i64 = 3_000;"),
    ("| 10 minutes |", "src/protocol/conn/guard.rs", "CAP_MS: i64 = 600_000;"),
    (
        "| failover guard (masters that Sentinels watch) | on, off | on |",
        "src/protocol/policy.rs",
        "has_failover_guard: AtomicBool::new(true)",
    ),
    ("| 4,096 fields", "src/protocol/command/fence.rs", "FIELDS: u64 = 4_096;"),
    ("after a sixth to a third", "src/protocol/operation/renew.rs", "EARLIEST_PARTS: i64 = 6;"),
    ("to a third of the TTL", "src/protocol/operation/renew.rs", "LATEST_PARTS: i64 = 3;"),
    ("after a thirtieth of the TTL", "src/protocol/operation/renew.rs", "PAUSE_PARTS: i64 = 30;"),
    ("| 4,096 bytes with the NUL", "src/ffi/message.rs", "CAPACITY: usize = 4096;"),
    ("| 2 MiB |", "src/ffi/message.rs", "KEPT_WITHOUT_TIMES_MAX: usize = 2 * KEPT_MAX;"),
    ("| 256, or 64 KiB;", "src/manager/log.rs", "LINES_MAX: usize = 256;"),
    ("or 64 KiB;", "src/manager/log.rs", "BYTES_MAX: usize = 64 * 1024;"),
    ("| 65,536;", "src/manager/kept_log.rs", "LINES_MAX: i32 = 65_536;"),
    ("Python and Ruby keep 1,000", "bindings/python/redlock/_manager.py", "_LOG_LINES = 1000"),
    ("and Ruby keep 1,000", "bindings/ruby/lib/redlock/native/servers.rb", "LOG_LINES = 1000"),
    ("Go 256", "bindings/go/logger.go", "const linesMax = 256"),
    (
        "| name of a resource in a trace | 256 bytes |",
        "src/protocol/stats/trace.rs",
        "NAME_MAX: usize = 256;",
    ),
    ("| one per second |", "src/protocol/conn/event_log.rs", "APART_MS: i64 = 1_000;"),
    (
        "| `run --ttl` | 500 ms at least | 10 s |",
        "tool/src/run/mod.rs",
        "TTL_MIN: Duration = Duration::from_millis(500);",
    ),
    ("at least | 10 s |", "tool/src/cli.rs", "default_value = \"10s\""),
    ("| `run --wait` | | 30 s |", "tool/src/cli.rs", "default_value = \"30s\""),
    ("a twentieth of the TTL, 100 ms at least", "tool/src/run/hold.rs", "MARGIN_PART: u32 = 20;"),
    (
        "100 ms at least and 1 s at most",
        "tool/src/run/hold.rs",
        "MARGIN_MIN: Duration = Duration::from_millis(100);",
    ),
    ("and 1 s at most", "tool/src/run/hold.rs", "MARGIN_MAX: Duration = Duration::from_secs(1);"),
    (
        "| 200 ms at least | 1 s |",
        "tool/src/top.rs",
        "INTERVAL_MIN: Duration = Duration::from_millis(200);",
    ),
    ("| 1,000 |", "tool/src/top.rs", "WATCHED_MAX: usize = 1000;"),
    (
        "| 10 minutes, 256 | 5 s, 1 |",
        "tool/src/bench.rs",
        "LONGEST: Duration = Duration::from_secs(600);",
    ),
];

/// Everything that the command reports as JSON is on its page.
#[test]
fn the_page_of_the_command_has_every_event_and_field() {
    let page = read("docs/command.md");
    let (_, page) = page.split_once("## JSON").expect("a section");
    let mut count = 0;
    for file in ["run/mod.rs", "run/waiting.rs", "servers.rs", "failure.rs"] {
        let code = read(&format!("tool/src/{file}"));
        for object in code.split("json!({").skip(1).filter_map(|it| it.split("})").next()) {
            let keys = object.split('"').skip(1).step_by(2);
            for key in keys {
                assert!(page.contains(&format!("`{key}`")), "{file}: {key}");
                count += 1;
            }
        }
    }
    let failure = read("tool/src/failure.rs");
    let (_, names) = failure.split_once("fn name(self)").expect("the names of failures");
    for name in names.split("\n    }\n").next().unwrap_or_default().split('"').skip(1).step_by(2) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
        count += 1;
    }
    assert!(count > 30, "the sources are not what this reads");
}

#[test]
fn what_pages_say_of_numbers_is_what_the_code_does() {
    let mut wrong = Vec::new();
    for (page, facts) in [("docs/ttl.md", &WAITS[..]), ("docs/limits.md", &LIMITS[..])] {
        let text = read(page);
        for (words, file, code) in facts {
            if !text.contains(words) {
                wrong.push(format!("{page} does not say: {words}"));
            }
            if !read(file).contains(code) {
                wrong.push(format!("{page} says {words:?}, but {file} has no {code:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
