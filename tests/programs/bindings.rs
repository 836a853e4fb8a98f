//! The common parts of the tests in several languages.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::support::nodes::Nodes;
use crate::support::usage::TTL;
use crate::support::{Authority, Cluster, Identity, Reply, Server, wait_until_ok};
use crate::workshop::{Run, Workshop};
use crate::{address_list, addresses};

/// The resources of these tests.
pub(crate) struct Ground {
    cluster: Cluster,
    secure: Option<(Cluster, Identity)>,
    workshop: Workshop,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let secure = cfg!(feature = "tls").then(start_secure);
        Self { cluster: Cluster::start(3), secure, workshop: Workshop::new() }
    }

    /// A minority of the servers is down from the start.
    pub(crate) fn with_one_server_down() -> Self {
        let ground = Self::new();
        ground.cluster[1].kill();
        ground
    }

    /// Runs tests that must pass, and must leave nothing locked.
    #[track_caller]
    pub(crate) fn run(&self, command: &mut Command) {
        command.env("REDLOCK_TEST_SERVERS", address_list(&self.cluster));
        command.env("REDLOCK_TEST_STRANGERS", strangers(&self.workshop));
        if let Some((servers, client)) = &self.secure {
            command.envs(servers.tls_environment());
            command.env("REDLOCK_TEST_TLS_CERTIFICATE", &client.certificate);
            command.env("REDLOCK_TEST_TLS_KEY", &client.key);
        }
        self.workshop.succeed(command);
        nothing_is_left(&self.cluster);
        self.secure.iter().for_each(|(servers, _)| nothing_is_left(servers));
    }
}

/// The example with three people who want one lock: each of them prints something.
#[track_caller]
pub(crate) fn the_example_runs(example: &mut Command) {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    each_has_had_its_turn(&workshop.succeed(example.args(addresses(&cluster))));
    nothing_is_left(&cluster);
}

/// The same with three slots of a cluster: a URL of each. Other keys are refused by the nodes.
#[track_caller]
pub(crate) fn the_example_runs_on_a_cluster(example: &mut Command) {
    let (nodes, workshop) = (Nodes::start(3, false), Workshop::new());
    each_has_had_its_turn(&workshop.succeed(example.args(nodes.used_voters(TTL))));
    wait_until_ok("no key is left", || match nodes.keys() {
        keys if keys.is_empty() => Ok(()),
        keys => Err(format!("{keys:?}")),
    });
}

/// All of the example's people have printed something.
#[track_caller]
pub(crate) fn each_has_had_its_turn(run: &Run) {
    assert_eq!(run.stderr, "");
    for person in ["Ada", "Ben", "Cleo"] {
        assert!(run.stdout.contains(person), "{}", run.stdout);
    }
}

#[track_caller]
pub(crate) fn the_example_says_why_it_cannot(example: &mut Command) {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    cluster[..2].iter().for_each(Server::kill);
    let run = workshop.run(example.args(addresses(&cluster)));
    assert_eq!(run.status.code(), Some(1));
    assert!(run.stderr.contains(&cluster[0].address()), "{}", run.stderr);
}

/// Servers that are reached over TLS by clients with a certificate, and one for a client.
fn start_secure() -> (Cluster, Identity) {
    let authority = Arc::new(Authority::new());
    let start =
        || Server::start_tls(&authority, &authority.server(), &["--tls-auth-clients", "yes"]);
    (Cluster::start_each(3, start), authority.client())
}

/// Libraries that do not match, each with words that the error must contain: `path=words,path=words`. Two are of
/// another version, one is too old to have all functions, one is something else.
fn strangers(workshop: &Workshop) -> String {
    let says = |it: &str| format!("const char *RedLock_Version(void) {{ return \"{it}\"; }}");
    let strangers = [
        ("newer", says("99.7.0"), "is redlock 99.7.0"),
        ("before", says("0.2.9"), "is redlock 0.2.9"),
        ("older", says(env!("CARGO_PKG_VERSION")), "has no RedLock"),
        ("other", "int unlock(void) { return 0; }".to_owned(), "has no RedLock_Version"),
    ];
    let built = strangers.map(|(name, code, words)| {
        let source = workshop.write(&format!("{name}.c"), &code);
        let library = workshop.fresh(name).with_extension("so");
        build(workshop, &source, &library);
        format!("{}={words}", library.display())
    });
    built.join(",")
}

fn build(workshop: &Workshop, source: &Path, library: &Path) {
    let mut command = Command::new("cc");
    workshop.succeed(command.args(["-shared", "-fPIC", "-o"]).arg(library).arg(source));
}

/// Returns when no key is left on a quorum. Programs have only just ended. A late server may still have
/// something to undo then, and no client waits for that.
#[track_caller]
pub(crate) fn nothing_is_left(cluster: &Cluster) {
    let up: Vec<_> = cluster.iter().filter(|it| it.connect().is_ok()).collect();
    assert!(up.len() >= cluster.quorum(), "too few servers are up");
    wait_until_ok("no key is left", || {
        let keys: Vec<String> = up.iter().flat_map(|server| keys(server)).collect();
        let on_a_quorum = |key| keys.iter().filter(|it| *it == key).count() >= cluster.quorum();
        keys.iter().find(|key| on_a_quorum(*key)).map_or(Ok(()), |key| Err(key.clone()))
    });
}

#[track_caller]
fn keys(server: &Server) -> Vec<String> {
    match server.must(&["KEYS", "*"]) {
        Reply::Array(keys) => {
            let names = keys.iter().filter_map(Reply::text);
            // What servers know of themselves and of fencing tokens outlives the locks.
            names.filter(|name| name != "redlock:guard" && name != "redlock:fence").collect()
        }
        other => panic!("a list was expected: {other:?}"),
    }
}
