//! What is configured as a server and is none.

use redlock::ffi::status::RedLockStatus::REDLOCK_UNREACHABLE;

use crate::support::fake::Abyss;
use crate::support::ports;
use crate::support::{Cluster, Fake, Lease, Manager, wait_until_ok};
use crate::{
    DEADLINE, PATIENT_MS, TOO_LONG, TTL, addresses, blames, every_way_to_lock_is_unreachable,
    everything_works, in_time, make_brief,
};

/// The same two tests for each thing that is no server of ours at all.
macro_rules! strangers {
    ($($name:ident: $stranger:expr, $words:expr);* $(;)?) => {$(
        mod $name {
            use super::*;

            #[test]
            fn as_a_minority_it_does_not_show() {
                let strangers = [$stranger, $stranger];
                strange_minority(&strangers.each_ref().map(|it| it.address()));
            }

            #[test]
            fn as_a_majority_it_is_unreachable_and_the_others_keep_nothing() {
                let strangers = [$stranger, $stranger, $stranger];
                strange_majority(&strangers.each_ref().map(|it| it.address()), $words);
            }
        }
    )*};
}

const NONSENSE: &[&str] = &["what no server should"];
const TOO_LARGE: &[&str] = &["a reply that does not fit"];
const SILENCE: &[&str] = &["said nothing", "no connection within"];
/// For what is nonsense, or the beginning of something that never comes to its end.
const HALF_SAID: &[&str] = &[NONSENSE[0], SILENCE[0], SILENCE[1]];

strangers! {
    nobody_listening: Nobody::new(), &["refused"];
    silent: Fake::silent(), SILENCE;
    unroutable: Abyss::new(), &["not connected"];
    hanging_up_at_once: Fake::closing(), &["closed", "reset", "lost"];
    a_web_server: Fake::web(), NONSENSE;
    speaking_gibberish: Fake::answering(b"\x00\xff\xfe gibberish".as_slice()), NONSENSE;
    speaking_another_protocol: Fake::answering("SSH-2.0-OpenSSH_9.2\r\n"), NONSENSE;
    answering_without_end: Fake::answering([b'+'; 200_000]), TOO_LARGE;
    announcing_a_huge_string: Fake::answering("$9999999999\r\n"), TOO_LARGE;
    announcing_a_huge_array: Fake::answering("*2147483647\r\n"), TOO_LARGE;
    nesting_deeply: Fake::answering("*1\r\n".repeat(10_000)), TOO_LARGE;
    answering_too_much: Fake::answering("+OK\r\n:1\r\n".repeat(50)), NONSENSE;
    answering_another_type: Fake::answering(":42\r\n:42\r\n"), HALF_SAID;
}

/// An address where connections are refused.
struct Nobody {
    port: u16,
}

impl Nobody {
    fn new() -> Self {
        Self { port: ports::free() }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

fn strange_minority(strangers: &[String]) {
    let cluster = Cluster::start(3);
    let manager = Manager::at(&[strangers, &addresses(&cluster)].concat());
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    in_time(TOO_LONG, || {
        for _ in 0..5 {
            everything_works(&manager, "r");
        }
    });
    cluster.wait_until_gone("r");
}

fn strange_majority(strangers: &[String], words: &[&str]) {
    let cluster = Cluster::start(2);
    let manager = Manager::at(&[strangers, &addresses(&cluster)].concat());
    make_brief(&manager);
    every_way_to_lock_is_unreachable(&manager, "r");
    in_time(DEADLINE, || assert_eq!(manager.is_locked("r"), Err(REDLOCK_UNREACHABLE)));
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong with each server", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), strangers, words)
    });
    cluster.wait_until_gone("r");
}
