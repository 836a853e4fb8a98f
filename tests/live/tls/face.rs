//! The settings for TLS through the Rust interface.

use std::sync::Arc;
use std::time::Duration;

use redlock::{Builder, Manager, Options, Status, Trouble};

use crate::support::{Authority, Server, wait_until};

const TTL: Duration = Duration::from_secs(600);

/// The server is reached, and grants a lock.
#[track_caller]
fn is_trusted(builder: Builder) {
    let manager = builder.build().expect("a manager");
    wait_until("it is connected", || manager.connect(Duration::ZERO).is_ok());
    drop(manager.acquire(&Options::new("r", TTL)).expect("it is free"));
}

#[track_caller]
fn is_refused(builder: Builder) {
    let manager = builder.build().expect("a manager");
    let refused = manager.connect(Duration::ZERO).expect_err("it is a stranger");
    assert_eq!(refused.status(), Status::Unreachable, "{refused}");
    assert!(refused.to_string().contains("certificate"), "{refused}");
    let servers = manager.servers();
    let trouble = servers.iter().find_map(|it| it.trouble);
    assert_eq!(trouble, Some(Trouble::Certificate), "{servers:?}");
}

#[test]
fn tls_settings_of_the_builder_are_passed_on() {
    let authority = Arc::new(Authority::new());
    let (name, wants) = ("one.lock.example", ["--tls-auth-clients", "yes"]);
    let server = Server::start_tls(&authority, &authority.server_named(&[name]), &wants);
    let client = authority.client();
    let shows = || {
        let builder = Manager::builder().server(server.url());
        builder.tls_certificate(&client.certificate, &client.key)
    };
    is_trusted(shows().tls_ca_file(authority.file()).tls_server_name(name));
    is_refused(shows().tls_ca_file(authority.file()));
    is_refused(shows().tls_server_name(name));
    is_trusted(shows().tls_insecure_skip_verify());
}
