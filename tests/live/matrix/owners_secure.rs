//! Nodes that clients and other nodes reach over TLS, by their names.

use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::owners::{RESOURCE, await_words};
use crate::support::nodes::Nodes;
use crate::support::product::{self, Product};
use crate::support::usage::{TTL, everything_works, make_brief};
use crate::support::{Authority, Identity, Manager, Server};

/// Nodes that announce a name, and show this identity.
fn nodes(authority: &Arc<Authority>, identity: &Identity) -> Nodes {
    let tls = ["--tls-cluster", "yes", "--tls-replication", "yes"];
    let named = ["--cluster-announce-hostname", "localhost"];
    let told = ["--cluster-preferred-endpoint-type", "hostname"];
    // To each other, nodes are clients as well.
    let client = authority.client();
    let shown =
        ["--tls-client-cert-file", &client.certificate, "--tls-client-key-file", &client.key];
    Nodes::start_each(3, false, |_, arguments| {
        let all = [arguments, &tls, &named, &told, &shown].concat();
        Server::start_tls(authority, identity, &all)
    })
}

/// The nodes, as the URL names them: by name.
fn urls(nodes: &Nodes, scheme: &str) -> [String; 3] {
    let tags = [0, 1, 2].map(|master| nodes.used_tag_at(master, TTL));
    tags.map(|tag| {
        nodes.url(&tag).replace("redis-cluster", scheme).replace("127.0.0.1", "localhost")
    })
}

fn manager(authority: &Authority, urls: &[String]) -> Manager {
    let manager = Manager::of_urls(urls);
    assert_eq!(manager.set_tls_ca(Some(&authority.file())), REDLOCK_OK, "{}", manager.message());
    manager
}

/// Servers before Redis 7.0 have no names.
fn have_names() -> bool {
    !Product::of(&product::tls_program()).is_before_7()
}

/// The certificate is for the name alone, so no node is trusted at its address.
#[test]
fn o13_nodes_prove_who_they_are_by_their_names() {
    if !have_names() {
        return;
    }
    let authority = Arc::new(Authority::new());
    let nodes = nodes(&authority, &authority.server_named(&["localhost"]));
    let urls = urls(&nodes, "rediss-cluster");
    let three = manager(&authority, &urls);
    three.connect_to_all();
    everything_works(&three, RESOURCE);
    let by_address = urls[0].replace("localhost", "127.0.0.1");
    let manager = manager(&authority, &[by_address]);
    make_brief(&manager);
    await_words(&manager, &["certificate"]);
}

/// Each node answers, and the slot moves to one to which there was no connection.
#[test]
fn o13_a_slot_that_moves_is_followed_over_tls() {
    if !have_names() {
        return;
    }
    let authority = Arc::new(Authority::new());
    let nodes = nodes(&authority, &authority.server_named(&["localhost"]));
    let [_, url, _] = urls(&nodes, "rediss-cluster");
    let manager = manager(&authority, &[url]);
    manager.unlock(&manager.take(RESOURCE, TTL));
    let tag = nodes.tag_at(1, 0);
    nodes.move_slot(&tag, &nodes.servers[1], &nodes.servers[2]);
    await_words(&manager, &[&format!("tag {tag}"), "lost its data"]);
    assert_eq!(manager.servers()[0].name, format!("tag {tag} ({})", nodes.servers[2].address()));
}

#[test]
fn o13_the_words_name_the_remedy() {
    if !have_names() {
        return;
    }
    let authority = Arc::new(Authority::new());
    let [plain, secure] = [Nodes::start(1, false), nodes(&authority, &authority.server())];
    let says = |nodes: &Nodes, scheme: &str, authority: &Authority, words: &str| {
        let url = nodes.url(&nodes.tag_at(0, 0)).replace("redis-cluster", scheme);
        let manager = manager(authority, &[url]);
        make_brief(&manager);
        await_words(&manager, &[words, &nodes.servers[0].address()]);
    };
    says(&plain, "rediss-cluster", &authority, "use redis-cluster://");
    says(&secure, "redis-cluster", &authority, "use rediss-cluster://");
    says(&secure, "rediss-cluster", &Authority::new(), "certificate");
    // The nodes stay connected to each other.
    let expired = authority.expired();
    for server in &secure.servers {
        let identity = ["tls-cert-file", &expired.certificate, "tls-key-file", &expired.key];
        server.must(&[&["CONFIG", "SET"][..], &identity].concat());
    }
    says(&secure, "rediss-cluster", &authority, "expired");
}
