//! Every system call that the library makes fails, one after the other.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread;

use crate::support::{Cluster, Program, Server, library};

/// Most of the time is spent waiting to connect to a server again.
const AT_ONCE: usize = 6;

#[test]
fn one_failing_system_call_gives_a_status() {
    let failed = fails("once", 1);
    for name in ["socket", "connect", "send", "recv", "poll", "close", "getrandom", "getaddrinfo"] {
        assert!(failed.contains(name), "{name} never failed, but {failed:?}");
    }
}

#[test]
fn one_failing_system_call_harms_no_other_thread() {
    let failed = fails("once", 3);
    assert!(failed.contains("sched_yield"), "it never failed, but {failed:?}");
}

#[test]
fn a_permanently_failing_function_gives_a_status() {
    fails("alike", 1);
}

#[test]
fn permanently_failing_system_calls_give_a_status() {
    fails("all", 1);
}

/// The library starts a thread if the program asks for it.
#[test]
fn one_failing_system_call_gives_an_event() {
    let failed = fails("once", 0);
    for name in ["epoll_create1", "epoll_ctl", "timerfd_create", "pthread_create", "poll", "send"] {
        assert!(failed.contains(name), "{name} never failed, but {failed:?}");
    }
}

#[test]
fn permanently_failing_system_calls_give_an_event() {
    fails("all", 0);
}

/// If the library begins to call another of these functions, the C program must make it fail, too. The other
/// imports for files and paths are for the backtraces of panics, which are never printed, and for the
/// certificates of the system. `readv` is in a table of operations on such a file, and is never called.
/// `mprotect` guards the stack of signal handlers in a Rust program.
#[test]
fn every_called_function_is_made_to_fail() {
    const OTHERS: &str = "accept accept4 bind brk clock_nanosleep clone dup dup2 dup3 epoll_create \
        epoll_wait eventfd execve fork getentropy gethostbyname getpeername getsockname listen \
        mremap nanosleep pipe pipe2 posix_spawn pread64 preadv prlimit64 pwrite64 recvfrom recvmsg select sendmsg sendto shutdown sigaction usleep";
    let listing = Command::new("nm").args(["-D", "--undefined-only"]).arg(library::path()).output();
    let listing = String::from_utf8(listing.expect("there is an nm").stdout).expect("UTF-8");
    let imports = listing.lines().filter_map(|line| line.split_whitespace().last());
    let imports: BTreeSet<_> = imports.filter_map(|it| it.split('@').next()).collect();
    assert!(imports.contains("send"), "{imports:?}");
    let missed: Vec<_> = OTHERS.split_whitespace().filter(|it| imports.contains(it)).collect();
    assert!(missed.is_empty(), "tests/programs/c/failing_shim.h does not know {missed:?}");
}

#[cfg(feature = "tls")]
#[test]
fn one_failing_system_call_over_tls_gives_a_status() {
    let failed = fails_with(&Cluster::start_tls(3), "once", 1);
    assert!(failed.contains("getrandom") && failed.contains("read"), "{failed:?}");
}

#[cfg(feature = "tls")]
#[test]
fn permanently_failing_system_calls_over_tls_give_a_status() {
    fails_with(&Cluster::start_tls(3), "all", 1);
}

/// Lets all calls of a conversation fail, and returns the functions that were struck.
fn fails(how: &str, threads: usize) -> BTreeSet<String> {
    fails_with(&Cluster::start(3), how, threads)
}

/// The same, with these servers.
fn fails_with(cluster: &Cluster, how: &str, threads: usize) -> BTreeSet<String> {
    let program = Program::compile("failing_calls");
    // Names are looked up only if a quorum is impossible without them. After a failure the resolver is left
    // alone for a second, and that is long for so many failures.
    let host = if threads == 0 { "127.0.0.1" } else { "localhost" };
    let by_name = |server: &Server| format!("{}://{host}:{}", server.scheme(), server.port());
    let places = [
        by_name(&cluster[0]),
        by_name(&cluster[1]),
        format!("unix://{}", cluster[2].unix_socket()),
    ];
    let places: Vec<_> =
        places.into_iter().chain(cluster.iter().map(Server::unix_socket)).collect();
    thread::scope(|scope| {
        let running: Vec<_> = (1..=AT_ONCE)
            .map(|first| {
                let numbers = [threads, first, AT_ONCE].map(|it| it.to_string());
                let arguments: Vec<_> = [&[how.to_owned()], &numbers[..], &places].concat();
                scope.spawn(|| struck(&program, cluster, arguments))
            })
            .collect();
        running.into_iter().flat_map(|it| it.join().expect("all is as it should be")).collect()
    })
}

fn struck(program: &Program, cluster: &Cluster, arguments: Vec<String>) -> Vec<String> {
    let trust = cluster.authority_file().map(|it| ("REDLOCK_TEST_TLS_CA", it));
    let trust: Vec<_> = trust.into_iter().collect();
    let mut running = program.start_in(&trust, &arguments);
    let mut names = Vec::new();
    loop {
        match running.hears_a_word() {
            end if end.is_empty() => break,
            name => names.push(name),
        }
    }
    running.ends_well();
    names
}
