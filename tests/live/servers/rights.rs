//! What a user of the servers needs. Each list of commands in the header and in the pages is compared with what is
//! sent: a list that lacks a command, or has one too many, fails.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, thread};

use redlock::ffi::servers::REDLOCK_GUARD_OFF;
use redlock::ffi::status::RedLockStatus::{REDLOCK_CANCELLED, REDLOCK_OK, REDLOCK_TAKEN};

use crate::TTL;
use crate::support::events::Wanted;
use crate::support::resp::Reply;
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

type Commands = BTreeSet<String>;

const RESOURCE: &str = "lock:r";
const WAIT_MS: i64 = 60_000;

/// For a lock with fencing tokens: how long a server that lost its numbers waits at least.
const SHORT_MS: i64 = 3_000;

/// What a client asks when it connects. If a user may not use it, nothing fails.
const ASKED_IN_PASSING: [&str; 2] = ["INFO", "PING"];

/// The guard marks numbers of fencing tokens as well. If it may not, nothing fails.
const MARKED_IN_PASSING: &str = "HSET";

/// A list: the file, and the text before and behind it.
struct List(&'static str, &'static str, &'static str);

#[test]
fn the_lists_of_a_plain_lock_are_what_is_sent() {
    let plain = sent(bare, |it| it.everything(&plain(), &plain()));
    List("docs/tls.md", "`resetkeys ", "`").is(&needed(&plain));
}

#[test]
fn the_lists_of_a_lock_that_is_left_behind_are_what_is_sent() {
    let pair = Pair::start(bare);
    let lease = take(&pair.first, &plain());
    let sent = pair.sent_in(|| {
        assert_eq!(pair.first.unlock_after(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    });
    List("include/redlock.h", "before this call. The ACL user needs", "\n *\n").is(&sent);
}

#[test]
fn the_lists_of_a_shared_lock_are_what_is_sent() {
    let wanted = Wanted::shared(RESOURCE, TTL);
    let uses = |it: &Pair, place: &str| {
        it.everything(&wanted, &plain());
        it.hand_on(&wanted, &plain(), place);
        it.downgrade();
    };
    let shared = needed(&sent(bare, |it| uses(it, ":i")));
    List("include/redlock.h", "RedLock_Downgrade. The ACL user needs", "*/").is(&shared);
    List("docs/shared.md", "A user of few rights needs", "; to\n").is(&shared);
    let woken = needed(&sent(unguarded, |it| {
        uses(it, ":w");
        it.hand_on(&plain(), &wanted, ":w");
        it.gives_up(&wanted);
    }));
    List("docs/shared.md", "to wake others, also", "\n\n").is(&(&woken - &shared));
}

#[test]
fn the_lists_of_several_resources_are_what_is_sent() {
    let wanted = Wanted::several(&[RESOURCE, "lock:s"], TTL);
    let several = sent(bare, |it| it.everything(&wanted, &wanted));
    let more = &several - &sent(bare, |it| it.everything(&plain(), &plain()));
    List("docs/tls.md", "[several resources](several.md) need", ", and").is(&more);
    List("docs/several.md", "A user of the servers needs", ", and").is(&more);
}

#[test]
fn the_lists_of_a_semaphore_are_what_is_sent() {
    let wanted = Wanted { permits: 1, ..plain() };
    let permits = sent(bare, |it| it.everything(&wanted, &wanted));
    List("docs/semaphore.md", "Servers need", "\n- ").is(&needed(&permits));
}

#[test]
fn the_lists_of_the_guard_are_what_is_sent() {
    let plain_lock = |it: &Pair| it.everything(&plain(), &plain());
    let without_waking = |it: &Manager| assert_eq!(it.set_waking(false), REDLOCK_OK);
    let more = &sent(without_waking, plain_lock) - &needed(&sent(bare, plain_lock));
    let pair = Pair::start(without_waking);
    let about_the_note = |line: &str| line.contains("redlock:guard");
    let mut guard = pair.sent_where(|| plain_lock(&pair), about_the_note);
    guard.extend(more.into_iter().filter(|it| it != "PING"));
    guard.remove(MARKED_IN_PASSING);
    List("include/redlock.h", "to read and write this key", "Without").is(&guard);
    List("docs/tls.md", "[guard](guard.md) also needs", "\n-").is(&guard);
    List("docs/guard.md", "(`~redlock:guard`,", ")").is(&guard);
    List("bindings/go/options.go", "write the key redlock:guard", "const (").is(&guard);
}

#[test]
fn the_lists_of_fencing_tokens_are_what_is_sent() {
    // Both must agree, so what is recorded of one has been answered.
    let pair = Pair::at(Cluster::start(2), |it| {
        assert_eq!(it.set_waking(false), REDLOCK_OK);
        assert_eq!(it.set_fencing(true), REDLOCK_OK);
    });
    pair.cluster.iter().for_each(|it| it.be_in_use(SHORT_MS));
    let restores = || pair.cluster.iter().for_each(|it| pair.restores_numbers(it));
    let about_numbers = |it: &str| it.contains("redlock:fence") && !it.contains("redlock:guard");
    let fenced = pair.sent_where(restores, about_numbers);
    let more = &fenced - &sent(bare, |it| it.everything(&plain(), &plain()));
    List("include/redlock.h", "The user needs the right to use this key", "Taking").is(&more);
    List("docs/tls.md", "the key `redlock:fence`", "\n").is(&more);
    List("docs/fencing.md", "`~redlock:fence`", "\n\n").is(&more);
}

#[test]
fn the_lists_of_those_who_are_woken_are_what_is_sent() {
    let woken = sent(unguarded, |it| {
        it.everything(&plain(), &plain());
        it.hand_on(&plain(), &plain(), ":w");
        it.gives_up(&plain());
    });
    let more = &woken - &sent(bare, |it| it.everything(&plain(), &plain()));
    List("include/redlock.h", "to the key :w, or to", "A line").is(&more);
    List("docs/tls.md", "[Being woken](waking.md) needs", "\n-").is(&more);
}

impl List {
    /// Says which of them the list lacks, and which it has too many.
    #[track_caller]
    fn is(&self, sent: &Commands) {
        let Self(file, before, behind) = self;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(path).expect("the file is there");
        let (_, text) = text.split_once(before).unwrap_or_else(|| panic!("{file}: no {before}"));
        let (text, _) = text.split_once(behind).unwrap_or_else(|| panic!("{file}: no {behind}"));
        let words = text.split(|it: char| !it.is_ascii_alphabetic() && it != '+');
        let rules = words.clone().filter_map(|it| it.strip_prefix('+')).map(str::to_uppercase);
        let names = words.filter(|it| is_command_word(it)).map(str::to_owned);
        let listed = rules.chain(names).filter(|it| it != "ACL").collect();
        let listed = known(&Server::start(), listed);
        let (lacks, superfluous) = (sent - &listed, &listed - sent);
        assert!(
            lacks.is_empty() && superfluous.is_empty(),
            "{file}, behind {before:?}: it lacks {lacks:?}, and has {superfluous:?} too many"
        );
    }
}

/// The rules of the page, tried with a server.
#[test]
fn a_user_with_only_the_rights_of_the_page_can_use_locks() {
    let page = include_str!("../../../docs/tls.md");
    let (_, rules) = page.split_once("`resetkeys ").expect("the rules");
    let (rules, _) = rules.split_once('`').expect("their end");
    let pair = Pair::start(bare);
    let rules: Vec<_> = rules.split_whitespace().collect();
    let rules = [&["ACL", "SETUSER", "locker", "on", "nopass", "resetkeys"], &*rules].concat();
    pair.cluster[0].must(&rules);
    for manager in [&pair.first, &pair.second] {
        assert_eq!(manager.set_credentials(Some("locker"), Some("any")), REDLOCK_OK);
    }
    pair.everything(&plain(), &plain());
}

fn needed(sent: &Commands) -> Commands {
    sent - &ASKED_IN_PASSING.map(str::to_owned).into()
}

/// Two clients of one server.
struct Pair {
    cluster: Cluster,
    first: Manager,
    second: Manager,
}

impl Pair {
    fn start(settings: impl Fn(&Manager)) -> Self {
        Self::at(Cluster::start(1), settings)
    }

    fn at(cluster: Cluster, settings: impl Fn(&Manager)) -> Self {
        let [first, second] = [(); 2].map(|()| cluster.manager());
        settings(&first);
        settings(&second);
        // Then scripts are sent, as text. What is denied is not recorded.
        for server in cluster.iter() {
            for newer in ["-evalsha", "-delifeq", "-delex", "-msetex"] {
                // An old server does not know them all.
                let _ = server.command(&["ACL", "SETUSER", "default", newer]);
            }
            server.be_new();
        }
        Self { cluster, first, second }
    }

    /// The commands that are sent meanwhile, and those in the texts of the scripts that are sent.
    fn sent_in(&self, body: impl FnOnce()) -> Commands {
        self.sent_where(body, |_| true)
    }

    /// The same, of some requests only.
    fn sent_where(&self, body: impl FnOnce(), is_meant: impl Fn(&str) -> bool) -> Commands {
        let requests = self.cluster[0].requests_in(body);
        let words = requests.iter().filter(|it| is_meant(it)).flat_map(|it| words(it)).collect();
        known(&self.cluster[0], words)
    }

    /// All that can be done with a lock.
    fn everything(&self, wanted: &Wanted, contender: &Wanted) {
        let Self { first, second, .. } = self;
        let lease = take(first, wanted);
        let ok = |status| assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(second.acquire(contender, &Lease::new()), REDLOCK_TAKEN);
        ok(first.extend(&lease, 2 * TTL));
        ok(first.confirm(&lease, TTL));
        match wanted.permits {
            0 => assert_eq!(second.is_locked(RESOURCE), Ok(true)),
            of => assert!(second.inspect_permits(RESOURCE, of).is_ok_and(|it| it.locked)),
        }
        let ticket = first.detach(&lease).expect("it is held");
        ok(second.adopt(&ticket, &lease));
        ok(second.unlock(&lease));
    }

    /// One waits until the other releases the lock. Meanwhile it has its place in this key.
    fn hand_on(&self, wanted: &Wanted, waiter: &Wanted, place: &str) {
        let lease = take(&self.first, wanted);
        let waiter = Wanted { wait_ms: WAIT_MS, ..waiter.clone() };
        let place = format!("{RESOURCE}{place}");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| take(&self.second, &waiter));
            // In small letters, because this is not recorded then.
            let is_there = || self.cluster[0].must(&["exists", &place]).integer() == 1;
            wait_until("it waits", is_there);
            assert_eq!(self.first.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            let lease = waiting.join().expect("it has the lock");
            assert_eq!(self.second.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        });
    }

    /// One stands in the wait queue, and leaves it.
    fn gives_up(&self, waiter: &Wanted) {
        let lease = take(&self.first, &plain());
        let other = Lease::new();
        let waiter = Wanted { wait_ms: WAIT_MS, ..waiter.clone() };
        thread::scope(|scope| {
            let waiting = scope.spawn(|| self.second.acquire(&waiter, &other));
            let is_there = || self.cluster[0].must(&["exists", "lock:r:w"]).integer() == 1;
            wait_until("it waits", is_there);
            assert_eq!(self.second.cancel(&other), REDLOCK_OK);
            assert_eq!(waiting.join().expect("a status"), REDLOCK_CANCELLED);
        });
        wait_until("it has left", || self.cluster[0].must(&["exists", "lock:r:w"]).integer() == 0);
        assert_eq!(self.first.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }

    /// The server loses the numbers of its tokens.
    fn restores_numbers(&self, server: &Server) {
        server.must(&["del", "redlock:fence"]);
        let lease = Lease::new();
        wait_until("its numbers are restored", || {
            self.first.lock(RESOURCE, SHORT_MS, &lease) == REDLOCK_OK
        });
        assert_eq!(self.first.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }

    fn downgrade(&self) {
        let lease = take(&self.first, &plain());
        assert_eq!(self.first.downgrade(&lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(self.first.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}

/// Neither guard nor waking nor fencing tokens, so that only the lock itself is seen.
fn bare(manager: &Manager) {
    assert_eq!(manager.set_waking(false), REDLOCK_OK);
    unguarded(manager);
}

fn unguarded(manager: &Manager) {
    assert_eq!(manager.set_restart_guard(REDLOCK_GUARD_OFF), REDLOCK_OK);
}

fn plain() -> Wanted {
    Wanted::new(RESOURCE, TTL)
}

/// What managers with these settings send.
fn sent(settings: impl Fn(&Manager), body: impl FnOnce(&Pair)) -> Commands {
    let pair = Pair::start(settings);
    pair.sent_in(|| body(&pair))
}

/// The command of a line of MONITOR, and all words in the text of a script that can be commands.
fn words(line: &str) -> Vec<String> {
    let command = line.split('"').nth(1);
    let words = command.into_iter().chain(line.split('\''));
    words.filter(|it| is_command_word(it)).map(str::to_owned).collect()
}

fn is_command_word(word: &str) -> bool {
    word.len() > 2 && word.bytes().all(|it| it.is_ascii_uppercase())
}

/// Those that the server knows as commands.
fn known(server: &Server, words: Commands) -> Commands {
    let is_command = |word: &String| {
        let reply = server.must(&["COMMAND", "INFO", word]);
        matches!(reply, Reply::Array(all) if matches!(all[..], [Reply::Array(_)]))
    };
    words.into_iter().filter(is_command).collect()
}

#[track_caller]
fn take(manager: &Manager, wanted: &Wanted) -> Lease {
    let lease = Lease::new();
    assert_eq!(manager.acquire(wanted, &lease), REDLOCK_OK, "{}", lease.message());
    lease
}
