//! Trusted authorities: files of certificates, good and bad, and those of the system.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_OK, REDLOCK_UNREACHABLE,
};

use crate::rig::tells_no_secret;
use crate::support::usage::{TTL, blames, everything_works};
use crate::support::{
    Authority, Cluster, Lease, Manager, Program, Server, wait_until, wait_until_ok,
};

/// Useless files, and the words about them.
pub(crate) fn files_of_no_use(authority: &Authority) -> Vec<(String, &'static str)> {
    let cut = authority.pem().lines().take(4).collect::<Vec<_>>().join("\n");
    let garbled = authority.pem().replace('A', "!");
    let wrong = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    vec![
        ("/nowhere/to/be/found.pem".to_owned(), "no such file"),
        ("relative-and-not-there.pem".to_owned(), "no such file"),
        ("/".to_owned(), "directory"),
        ("/dev/zero".to_owned(), "too large"),
        ("/etc/hostname/ca.pem".to_owned(), "not a directory"),
        (authority.write("empty.pem", ""), "no certificate"),
        (authority.write("text.pem", "These are words.\n"), "no certificate"),
        (authority.write("zeros.pem", "\0".repeat(5000)), "no certificate"),
        (authority.write("ca.der", authority.der()), "PEM"),
        (authority.write("cut.pem", cut), "PEM"),
        (authority.write("garbled.pem", garbled), "PEM"),
        (authority.write("wrong.pem", wrong), "certificate"),
        (authority.server().key, "no certificate"),
    ]
}

#[test]
fn a_useless_file_is_refused_and_changes_nothing() {
    let cluster = Cluster::start_tls(3);
    let (manager, authority) = (cluster.manager(), Authority::new());
    for (file, words) in files_of_no_use(&authority) {
        assert_eq!(manager.set_tls_ca(Some(&file)), REDLOCK_INVALID_ARGUMENT, "{file}");
        is_refused(&manager.message(), "ca_file", &file, words);
    }
    assert_eq!(manager.set_tls_ca(Some("")), REDLOCK_INVALID_ARGUMENT);
    assert!(manager.message().contains("empty"), "{}", manager.message());
    manager.connect_to_all();
    everything_works(&manager, "r");
}

/// Root may read everything, so a child that runs as nobody reads the file.
#[test]
fn an_unreadable_file_is_refused() {
    let authority = Authority::new();
    let file = authority.write("secret.pem", authority.pem());
    fs::set_permissions(&file, Permissions::from_mode(0o0)).expect("it is ours");
    let mut program = Program::compile("tls_unreadable").start(&[file.as_str()]);
    let said = program.hears_a_word();
    assert_eq!(said, "ca_file cannot be read: permission denied");
    program.ends_well();
}

#[test]
fn a_file_may_contain_many_authorities_and_comments() {
    let authority = Arc::new(Authority::new());
    let others: String = (0..20).map(|_| Authority::new().pem() + "# one more\n\n").collect();
    let file = authority.write("many.pem", format!("Ours:\r\n{others}{}", authority.pem()));
    let windows = authority.write("windows.pem", authority.pem().replace('\n', "\r\n"));
    for file in [file, windows] {
        let cluster: Cluster =
            (0..3).map(|_| Server::start_tls(&authority, &authority.server(), &[])).collect();
        let manager = cluster.manager();
        assert_eq!(manager.set_tls_ca(Some(&file)), REDLOCK_OK, "{}", manager.message());
        manager.connect_to_all();
        everything_works(&manager, "r");
    }
}

/// The file was read, and may be deleted.
#[test]
fn a_file_is_read_only_at_the_call() {
    let authority = Arc::new(Authority::new());
    let server = Server::start_tls(&authority, &authority.server(), &[]);
    let copy = authority.write("copy.pem", authority.pem());
    let manager = Manager::new();
    assert_eq!(manager.set_tls_ca(Some(&copy)), REDLOCK_OK, "{}", manager.message());
    fs::remove_file(copy).expect("it is ours");
    assert_eq!(manager.add(&server.url(), 0), REDLOCK_OK);
    everything_works(&manager, "r");
    server.hang_up();
    wait_until("it is connected to anew", || {
        manager.try_lock("r", TTL, 0, &Lease::new()) == REDLOCK_OK
    });
}

#[test]
fn changed_authorities_are_used_for_new_connections() {
    let (first, second) = (Arc::new(Authority::new()), Arc::new(Authority::new()));
    let server = Server::start_tls(&first, &first.server(), &[]);
    let manager = Manager::of_urls(&[server.url()]);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    let lease = Lease::new();
    let is_refused = || {
        wait_until_ok("the message tells what is wrong", || {
            assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
            blames(&lease.message(), &[server.address()], &["unknown authority"])
        });
    };
    assert_eq!(manager.set_tls_ca(Some(&second.file())), REDLOCK_OK);
    is_refused();
    assert_eq!(manager.set_tls_ca(Some(&first.file())), REDLOCK_OK);
    manager.connect_to_all();
    everything_works(&manager, "r");
    assert_eq!(manager.set_tls_ca(Some(&second.file())), REDLOCK_OK);
    everything_works(&manager, "r");
    server.kill();
    server.restart();
    wait_until("the old connection is given up", || {
        manager.try_lock("r", TTL, 0, &lease) == REDLOCK_UNREACHABLE
    });
    is_refused();
}

#[test]
fn without_a_file_the_system_authorities_are_trusted() {
    let cluster = Cluster::start_tls(3);
    let (ours, others) = (cluster.authority_file().expect("one"), Authority::new());
    let program = Program::compile("tls_status");
    let says = |file: &str| {
        let nowhere = others.file() + ".d";
        let variables = [("SSL_CERT_FILE", file.to_owned()), ("SSL_CERT_DIR", nowhere)];
        let mut running = program.start_in(&variables, &cluster.urls());
        let said = running.hears_a_word();
        running.ends_well();
        said
    };
    assert_eq!(says(&ours), "REDLOCK_OK:");
    for file in [others.file(), "/etc/ssl/certs/ca-certificates.crt".to_owned()] {
        let said = says(&file);
        assert!(said.starts_with("REDLOCK_UNREACHABLE"), "{file}: {said}");
        assert!(said.contains("unknown authority"), "{file}: {said}");
    }
    for file in ["/nowhere/to/be/found.pem", "/", &others.write("empty.pem", "")] {
        let said = says(file);
        assert!(said.starts_with("REDLOCK_UNREACHABLE"), "{file}: {said}");
        assert!(said.contains("set a CA file"), "{file}: {said}");
    }
}

#[test]
fn a_named_file_replaces_the_system_authorities() {
    let cluster = Cluster::start_tls(3);
    let (ours, others) = (cluster.authority_file().expect("one"), Authority::new());
    let (program, others) = (Program::compile("tls_status"), &others.file());
    for (named, of_the_system, status) in
        [(&ours, others, "REDLOCK_OK"), (others, &ours, "REDLOCK_UNREACHABLE")]
    {
        let variables = [("SSL_CERT_FILE", of_the_system), ("REDLOCK_TEST_TLS_CA", named)];
        let variables = variables.map(|(name, value)| (name, value.clone()));
        let mut running = program.start_in(&variables, &cluster.urls());
        let said = running.hears_a_word();
        assert!(said.starts_with(status), "{said}");
        running.ends_well();
    }
}

#[track_caller]
pub(crate) fn is_refused(message: &str, argument: &str, file: &str, words: &str) {
    assert!(
        message.starts_with(&format!("{argument} cannot be ")),
        "{argument} is not in {message:?}"
    );
    assert!(file.len() < 2 || !message.contains(file), "{file} is in {message:?}");
    let told = message.to_lowercase().contains(&words.to_lowercase());
    assert!(told, "{words:?} is not in {message:?}");
    assert!(!message.contains('\n'), "more than one line: {message:?}");
    tells_no_secret(&[message.to_owned()]);
}
