//! A Redis Cluster of real nodes.

use std::ops::Range;

use super::ports;
use super::product::product;
use super::resp::Reply;
use super::sentinels::{anew, info};
use super::servers::Server;
use super::wait::{wait_until, wait_until_ok};

const SLOTS: usize = 16_384;

/// How long a node may be silent before the others consider it down: while they get to know each other, which takes the
/// longer the more patient they are; from then on, for a busy machine; and for tests in which a master is killed.
const BEGIN_MS: &str = "5000";
const PATIENT_MS: &str = "60000";
const BRIEF_MS: &str = "1000";

/// Masters that have a third or so of the slots each, and behind them a replica of each, in the same order.
pub(crate) struct Nodes {
    pub(crate) servers: Vec<Server>,
    masters: usize,
}

impl Nodes {
    /// Starts them, and waits until each node knows all of it.
    pub(crate) fn start(masters: usize, with_replicas: bool) -> Self {
        Self::start_with(masters, with_replicas, |_| Vec::new())
    }

    /// The same with more arguments for each node, by its place.
    pub(crate) fn start_with(
        masters: usize,
        with_replicas: bool,
        more: impl Fn(usize) -> Vec<String>,
    ) -> Self {
        Self::start_each(masters, with_replicas, |nth, arguments| {
            let more = more(nth);
            let more = more.iter().map(String::as_str);
            let all: Vec<_> = arguments.iter().copied().chain(more).collect();
            Server::start_with(&all)
        })
    }

    /// Each of them is started by this function, which gets its place and the arguments that it needs.
    pub(crate) fn start_each(
        masters: usize,
        with_replicas: bool,
        start: impl Fn(usize, &[&str]) -> Server,
    ) -> Self {
        let count = masters * if with_replicas { 2 } else { 1 };
        let servers = (0..count).map(|nth| node(|arguments| start(nth, arguments))).collect();
        let nodes = Self { servers, masters };
        for (nth, server) in nodes.servers.iter().enumerate() {
            server.must(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch_of(nth).to_string()]);
            if nth < masters {
                let slots: Vec<String> = nodes.slots(nth).map(|it| it.to_string()).collect();
                let slots = slots.iter().map(String::as_str);
                server.must(&["CLUSTER", "ADDSLOTS"].into_iter().chain(slots).collect::<Vec<_>>());
            }
        }
        let [first, others @ ..] = &nodes.servers[..] else { panic!("no node") };
        for other in others {
            let (port, bus) = (other.port().to_string(), bus_of(other).to_string());
            first.must(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        nodes.await_all(|server| line_count(server) == count);
        for (replica, master) in nodes.servers[masters..].iter().zip(&nodes.servers) {
            let id = id_of(master);
            wait_until("it may follow", || anew(replica, &["CLUSTER", "REPLICATE", &id]).is_ok());
            wait_until("it has caught up", || info(replica).contains("master_link_status:up"));
        }
        nodes.await_all(|server| {
            is_well(server) && map_of(server).matches("slave").count() == count - masters
        });
        nodes.be_patient_for(PATIENT_MS);
        nodes
    }

    /// From now on, a silent node is soon considered down.
    pub(crate) fn be_brief(&self) {
        self.be_patient_for(BRIEF_MS);
    }

    /// The same, but this node considers the others to be well, so it goes on when it is cut off.
    pub(crate) fn be_brief_but(&self, server: &Server) {
        self.be_brief();
        be_patient_for(server, PATIENT_MS);
    }

    fn be_patient_for(&self, ms: &str) {
        self.servers.iter().for_each(|it| be_patient_for(it, ms));
    }

    /// A voter whose keys have this tag. The first nodes are named.
    pub(crate) fn url(&self, tag: &str) -> String {
        self.url_of(tag, &[0, 1, 2])
    }

    /// The same, with these nodes in the URL, as far as they are there.
    pub(crate) fn url_of(&self, tag: &str, seeds: &[usize]) -> String {
        let seeds = seeds.iter().filter_map(|&it| self.servers.get(it));
        let seeds: Vec<String> = seeds.map(Server::address).collect();
        format!("redis-cluster://{}?tag={tag}", seeds.join(","))
    }

    /// A tag whose slot this master has at the beginning; another one for each number.
    pub(crate) fn tag_at(&self, master: usize, number: usize) -> String {
        let is_there = |tag: &String| self.slots(master).contains(&self.slot_of(tag));
        let mut tags = (0..).map(|it| format!("t{it}")).filter(is_there);
        tags.nth(number).expect("there are enough")
    }

    /// The same for a tag that was in use before, with locks of this TTL: its slot has a vote at once.
    pub(crate) fn used_tag_at(&self, master: usize, longest_ttl_ms: i64) -> String {
        let tag = self.tag_at(master, 0);
        let words = format!(" e{}", epoch_of(master));
        self.servers[master].be_in_use_for(&format!("{{{tag}}}"), longest_ttl_ms, &words);
        tag
    }

    /// The URL of such a voter on each master.
    pub(crate) fn used_voters(&self, longest_ttl_ms: i64) -> Vec<String> {
        let voter = |master| self.url(&self.used_tag_at(master, longest_ttl_ms));
        (0..self.masters).map(voter).collect()
    }

    /// The server that has the slot of this tag now, as this node says.
    #[track_caller]
    pub(crate) fn owner_of(&self, tag: &str, according_to: &Server) -> Option<&Server> {
        let slot = self.slot_of(tag);
        let map = map_of(according_to);
        let is_it = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            let has = words[8..].iter().any(|it| {
                let (first, last) = it.split_once('-').unwrap_or((it, it));
                let [first, last] = [first, last].map(str::parse::<usize>);
                matches!((first, last), (Ok(first), Ok(last)) if (first..=last).contains(&slot))
            });
            words[2].contains("master") && has
        };
        let line = map.lines().find(is_it)?;
        self.servers.iter().find(|it| line.starts_with(&id_of(it)))
    }

    /// The replica of this master takes its place, without loss.
    #[track_caller]
    pub(crate) fn fail_over(&self, master: usize) {
        let replica = self.replica_of(master);
        wait_until_ok("the failover has begun", || match anew(replica, &["CLUSTER", "FAILOVER"]) {
            reply if reply.is_ok() => Ok(()),
            reply => Err(format!("{reply:?}")),
        });
        wait_until("it is the master", || info(replica).contains("role:master"));
    }

    pub(crate) fn replica_of(&self, master: usize) -> &Server {
        &self.servers[self.masters + master]
    }

    /// Ends a node, and starts it on another port. It has its file, and no data.
    #[track_caller]
    pub(crate) fn restart_elsewhere(&mut self, nth: usize) {
        self.servers[nth].restart_elsewhere();
        let place = format!("{}@", self.servers[nth].address());
        self.await_all(|it| map_of(it).contains(&place) && is_well(it));
    }

    /// Returns when all slots are served again.
    #[track_caller]
    pub(crate) fn await_health(&self) {
        self.await_all(is_well);
    }

    /// The ports on which the nodes talk to each other.
    pub(crate) fn buses(&self) -> Vec<u16> {
        self.servers.iter().map(bus_of).collect()
    }

    /// Moves the slot of a tag with all its keys to another master, as `redis-cli --cluster reshard` does.
    #[track_caller]
    pub(crate) fn move_slot(&self, tag: &str, from: &Server, to: &Server) {
        self.move_slot_and_lose(tag, from, to, |_| false);
    }

    /// The same. Some keys are lost on the way.
    #[track_caller]
    pub(crate) fn move_slot_and_lose(
        &self,
        tag: &str,
        from: &Server,
        to: &Server,
        is_lost: impl Fn(&str) -> bool,
    ) {
        let (slot, [old, new]) = (self.slot_of(tag).to_string(), [from, to].map(id_of));
        to.must(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &old]);
        from.must(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &new]);
        let port = to.port().to_string();
        loop {
            let Reply::Array(keys) = from.must(&["CLUSTER", "GETKEYSINSLOT", &slot, "10"]) else {
                panic!("no keys")
            };
            let Some(key) = keys.first().and_then(Reply::text) else { break };
            if !is_lost(&key) {
                from.must(&["MIGRATE", "127.0.0.1", &port, &key, "0", "5000"]);
                continue;
            }
            // ASK: it has just been released, or has expired.
            let reply = from.command(&["DEL", &key]);
            let is_gone = matches!(&reply, Reply::Error(why) if why.starts_with("ASK "));
            assert!(is_gone || reply == Reply::Integer(1), "{key}: {reply:?}");
        }
        for server in [to, from] {
            server.must(&["CLUSTER", "SETSLOT", &slot, "NODE", &new]);
        }
        self.await_all(|it| self.owner_of(tag, it).is_some_and(|owner| owner.port() == to.port()));
    }

    /// All keys on all nodes that do not say what a node remembers.
    pub(crate) fn keys(&self) -> Vec<String> {
        let keys = self.servers.iter().flat_map(|server| match server.must(&["KEYS", "*"]) {
            Reply::Array(all) => all,
            reply => panic!("{reply:?}"),
        });
        let is_of_lock = |key: &String| !is_of_memory(key);
        keys.filter_map(|it| it.text()).filter(is_of_lock).collect()
    }

    fn slot_of(&self, tag: &str) -> usize {
        let reply = self.servers[0].must(&["CLUSTER", "KEYSLOT", &format!("{{{tag}}}")]);
        let Reply::Integer(slot) = reply else { panic!("{reply:?}") };
        slot as usize
    }

    fn slots(&self, master: usize) -> Range<usize> {
        let from = |nth: usize| SLOTS * nth / self.masters;
        from(master)..from(master + 1)
    }

    #[track_caller]
    fn await_all(&self, is_so: impl Fn(&Server) -> bool) {
        wait_until("each node knows it", || self.servers.iter().all(&is_so));
    }
}

/// In which epoch a node begins.
fn epoch_of(nth: usize) -> usize {
    nth + 1
}

/// Whether this key says what a node remembers, and not who has a lock.
pub(crate) fn is_of_memory(key: &str) -> bool {
    ["redlock:guard", "redlock:fence"].iter().any(|it| key.ends_with(it))
}

fn node(start: impl FnOnce(&[&str]) -> Server) -> Server {
    let bus = ports::free().to_string();
    let cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", BEGIN_MS];
    let quick = ["--repl-diskless-sync-delay", "0", "--cluster-require-full-coverage", "no"];
    let bus = if product().is_before_7() { &[][..] } else { &["--cluster-port", &bus] };
    start(&[&cluster[..], &quick, bus].concat())
}

fn be_patient_for(server: &Server, ms: &str) {
    server.must(&["CONFIG", "SET", "cluster-node-timeout", ms]);
}

fn text(server: &Server, words: &[&str]) -> String {
    anew(server, words).text().expect("words")
}

fn map_of(server: &Server) -> String {
    text(server, &["CLUSTER", "NODES"])
}

fn is_well(server: &Server) -> bool {
    let state = text(server, &["CLUSTER", "INFO"]);
    state.contains("cluster_state:ok") && state.contains("cluster_slots_assigned:16384")
}

fn line_count(server: &Server) -> usize {
    let map = map_of(server);
    map.lines().filter(|it| !it.contains("handshake")).count()
}

fn id_of(server: &Server) -> String {
    text(server, &["CLUSTER", "MYID"])
}

/// The port on which nodes talk to each other.
fn bus_of(server: &Server) -> u16 {
    if product().is_before_7() {
        return server.port() + 10_000;
    }
    let reply = server.must(&["CONFIG", "GET", "cluster-port"]);
    let Reply::Array(parts) = reply else { panic!("{reply:?}") };
    parts.get(1).and_then(Reply::text).and_then(|it| it.parse().ok()).expect("it has one")
}
