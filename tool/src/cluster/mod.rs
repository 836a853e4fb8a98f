//! What the nodes of a cluster say: which master owns the slot of each tag, and how the nodes are configured.
//!
//! All nodes are asked, also those that the URL does not name. A majority of them must name the owner, and the library's
//! own rules count it.

mod findings;
mod tags;

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use redis::{Connection, RedisError, RedisResult, cmd};
use redlock::protocol::command::cluster_nodes::{ClusterNode, ClusterNodes};
use redlock::protocol::command::identity::RunId;
use redlock::protocol::moment::Moment;
use redlock::protocol::quorum::ownership::{self, Ownership, Support, Word};
use redlock::protocol::servers::cluster_slot::COUNT_MAX;

use serde_json::{Value, json};

pub(crate) use self::findings::examine;
use self::tags::first_tags;
pub(crate) use self::tags::suggest;
use crate::config::Config;
use crate::failure::{Failure, Kind};
use crate::hosts::{self, Hosts, place};
use crate::{survey, time};

/// The port of a node that the URL does not say.
const PORT: u16 = 6379;

/// Why a node does not say who owns a slot, where more than a connection is missing.
const DISABLED: &str = "cluster support is disabled";
const FORBIDDEN: &str = "the user may not run CLUSTER NODES";

/// The settings that matter.
const NODE_TIMEOUT: &str = "cluster-node-timeout";
const FULL_COVERAGE: &str = "cluster-require-full-coverage";
const MIN_REPLICAS: &str = "min-replicas-to-write";
const MAX_LAG: &str = "min-replicas-max-lag";
const MEMORY: &str = "maxmemory";
const EVICTION: &str = "maxmemory-policy";

/// A cluster, and the slots of it that are voters.
pub(crate) struct Cluster {
    is_over_tls: bool,
    /// As the URLs have it.
    login: String,
    seeds: Vec<String>,
    voters: Vec<Voter>,
    /// What the nodes say: first those that the URL names, then the others.
    said: Vec<Said>,
}

/// The slot of a tag.
#[derive(Clone)]
pub(crate) struct Voter {
    pub(crate) tag: String,
    pub(crate) slot: u16,
    /// The master that a majority of the nodes names.
    pub(crate) owner: Option<Owner>,
    /// How many nodes name it, or the master that most of them name.
    pub(crate) support: Support,
}

/// The master that owns a slot.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) place: String,
    pub(crate) id: RunId,
    pub(crate) epoch: u64,
    is_down: bool,
    pub(crate) replicas: usize,
    /// How many of them are connected to it. None if it does not say.
    pub(crate) connected: Option<usize>,
    /// Settings. None if it does not tell.
    pub(crate) node_timeout_ms: Option<u64>,
    pub(crate) full_coverage: Option<bool>,
}

/// What one node says.
struct Said {
    node: String,
    report: Result<Report, String>,
}

struct Report {
    /// The answer to `CLUSTER NODES`.
    map: String,
    /// The answers to `CONFIG GET`. What the node does not tell is not there.
    settings: BTreeMap<String, String>,
    /// How many replicas are connected to it, if it says so.
    connected: Option<usize>,
}

/// A node that has answered.
struct Known<'a> {
    node: &'a str,
    report: &'a Report,
    map: ClusterNodes<'a>,
}

impl Cluster {
    /// All clusters that these URLs name. Their nodes are asked.
    pub(crate) fn ask_all(config: &Config, urls: &[String]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for url in urls {
            let (Some(slot), Some(it)) = (survey::slot_of(url), Hosts::of(url, PORT)) else {
                continue;
            };
            let voter = (slot.tag().to_owned(), slot.slot());
            let is_same = |other: &&mut Self| {
                let names = (other.is_over_tls, &*other.login, &other.seeds);
                names == (it.is_over_tls, it.login, &it.places)
            };
            match all.iter_mut().find(is_same) {
                Some(cluster) => cluster.voters.push(Voter::unknown(voter)),
                None => all.push(Self {
                    is_over_tls: it.is_over_tls,
                    login: it.login.to_owned(),
                    seeds: it.places,
                    voters: vec![Voter::unknown(voter)],
                    said: Vec::new(),
                }),
            }
        }
        all.iter_mut().for_each(|it| it.ask(config));
        // URLs of one cluster may name different nodes, or users.
        let mut distinct: Vec<Self> = Vec::new();
        for it in all {
            match distinct.iter_mut().find(|other| other.shares_a_node_with(&it)) {
                Some(other) => other.voters.extend(it.voters),
                None => distinct.push(it),
            }
        }
        distinct
    }

    /// Its first node that the URL names.
    pub(crate) fn name(&self) -> String {
        format!("cluster {}", self.seeds.first().map_or("", |it| it))
    }

    pub(crate) fn voters(&self) -> &[Voter] {
        &self.voters
    }

    /// Asks the nodes that the URL names, then those that they know, and finds the owner of each slot.
    fn ask(&mut self, config: &Config) {
        self.said = self.ask_each(config, self.seeds.clone());
        let known = self.known();
        let ids: BTreeSet<&str> = known.iter().map(|it| it.map.myself().id.as_str()).collect();
        let others = known.iter().flat_map(|it| it.map.others());
        let new = others.filter(|it| !ids.contains(it.id.as_str()));
        let is_new = |it: &String| !self.seeds.contains(it);
        let more: BTreeSet<_> = new.filter_map(|it| self.place_of(it)).filter(is_new).collect();
        let room = COUNT_MAX.saturating_sub(self.said.len());
        let more = self.ask_each(config, more.into_iter().take(room).collect());
        self.said.extend(more);
        let voter = |it: &Voter| self.voter(&it.tag, it.slot);
        self.voters = self.voters.iter().map(voter).collect();
    }

    fn ask_each(&self, config: &Config, nodes: Vec<String>) -> Vec<Said> {
        let ask = |node: String| {
            let url = hosts::url_of(self.is_over_tls, &self.login, &node);
            let report = survey::open_at(config, &url).and_then(|mut it| Report::read(&mut it));
            let report = match report {
                // An answer that is no map says nothing.
                Ok(it) if ClusterNodes::parse(&it.map).is_none() => {
                    Err("protocol error".to_owned())
                }
                it => it.map_err(|error| words(&error)),
            };
            Said { node, report }
        };
        let ask = &ask;
        thread::scope(|scope| {
            let asked: Vec<_> = nodes.into_iter().map(|it| scope.spawn(move || ask(it))).collect();
            asked.into_iter().flat_map(|it| it.join()).collect()
        })
    }

    /// Those that have answered. One that the URL names twice is there once.
    fn known(&self) -> Vec<Known<'_>> {
        let mut known: Vec<Known<'_>> = Vec::new();
        for it in &self.said {
            let Ok(report) = &it.report else { continue };
            let Some(map) = ClusterNodes::parse(&report.map) else { continue };
            if known.iter().all(|other| other.map.myself().id != map.myself().id) {
                known.push(Known { node: &it.node, report, map });
            }
        }
        known
    }

    fn shares_a_node_with(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.known(), other.known());
        let is_there = |id: RunId| theirs.iter().any(|it| it.map.all().any(|it| it.id == id));
        mine.iter().any(|it| it.map.all().any(|it| is_there(it.id)))
    }

    /// Where a node is, as another one says.
    fn place_of(&self, node: &ClusterNode<'_>) -> Option<String> {
        let (host, port) = node.location(self.is_over_tls)?;
        Some(place(&host, &port.to_string()))
    }

    /// The owner of a slot, as one node says. A node that does not know where it is itself is where it was asked.
    fn named_by(&self, known: &Known<'_>, slot: u16) -> Option<(ownership::Owner<Place>, usize)> {
        let owner = known.map.owner_of(slot)?;
        let is_itself = owner.id == known.map.myself().id;
        let at = self.place_of(owner).or_else(|| is_itself.then(|| known.node.to_owned()))?;
        let place = (owner.id, at);
        Some((ownership::Owner { place, epoch: owner.epoch }, known.map.others().count()))
    }

    /// Tags on so many different masters, with the owners of their slots.
    fn on_different_masters(&self, count: usize) -> Result<Vec<Voter>, Failure> {
        let known = self.known();
        let Some(map) = newest(&known) else {
            let words = format!("no cluster node answers: {}", self.silence());
            return Err(Failure::new(Kind::Unreachable, words));
        };
        let masters = map.owners().count();
        if count > masters {
            return Err(Failure::usage(format!(
                "{count} tags need as many masters with slots, and the cluster has {masters}"
            )));
        }
        let agreed = |(tag, slot, owner): (String, u16, &ClusterNode<'_>)| {
            let voter = self.voter(&tag, slot);
            let is_agreed = voter.owner.as_ref().is_some_and(|it| it.id == owner.id);
            let words = || format!("tag {tag}: {}: see redlock doctor", voter.lack());
            if is_agreed { Ok(voter) } else { Err(Failure::new(Kind::Unreachable, words())) }
        };
        first_tags(map).take(count).map(agreed).collect()
    }

    /// The URL of a voter with this tag, without the user and the password.
    fn url(&self, tag: &str) -> String {
        let scheme = if self.is_over_tls { "rediss-cluster" } else { "redis-cluster" };
        format!("{scheme}://{}?tag={tag}", self.seeds.join(","))
    }

    /// The nodes that do not answer, and why.
    fn silence(&self) -> String {
        let why = |it: &Said| Some(format!("{} ({})", it.node, it.report.as_ref().err()?));
        self.said.iter().filter_map(why).collect::<Vec<_>>().join(", ")
    }

    /// The owner of a slot, as the nodes say.
    fn voter(&self, tag: &str, slot: u16) -> Voter {
        let known = self.known();
        let asked_at = Moment::from_nanos(0);
        let mut ownership: Ownership<Place, RunId> = Ownership::new(self.seeds.len());
        (self.seeds.len()..known.len()).for_each(|_| ownership.add());
        for (which, it) in known.iter().enumerate() {
            ownership.identify(which, Some(it.map.myself().id));
            if let Some((owner, others)) = self.named_by(it, slot) {
                ownership.hear(which, Word { owner, others, asked_at });
            }
        }
        let owner = ownership.lease().map(|it| Owner::find(it.owner, &known));
        Voter { tag: tag.to_owned(), slot, owner, support: ownership.support_since(asked_at) }
    }
}

/// The map of the node that knows the latest change.
fn newest<'a>(known: &'a [Known<'_>]) -> Option<&'a ClusterNodes<'a>> {
    let epoch = |it: &Known<'_>| it.map.all().map(|it| it.epoch).max();
    known.iter().max_by_key(|it| (epoch(it), it.map.owners().count())).map(|it| &it.map)
}

/// A node: its id, and where it is.
type Place = (RunId, String);

impl Voter {
    fn unknown((tag, slot): (String, u16)) -> Self {
        let support = Support { named: 0, needed: 0, of: 0 };
        Self { tag, slot, owner: None, support }
    }

    pub(crate) fn as_json(&self) -> Value {
        let Support { named, needed, of } = self.support;
        let mut told = json!({"tag": self.tag, "slot": self.slot, "named": named, "needed": needed, "nodes": of});
        if let (Some(it), Value::Object(told)) = (&self.owner, &mut told) {
            let owner = json!({"master": it.place, "node": it.id.as_str(), "epoch": it.epoch,
                "replicas": it.replicas, "replicas_connected": it.connected,
                "node_timeout_ms": it.node_timeout_ms, "full_coverage": it.full_coverage});
            told.extend(owner.as_object().cloned().unwrap_or_default());
        }
        told
    }

    /// For a table: the tag, its slot, and the master that owns it.
    pub(crate) fn place_cells(&self) -> [String; 4] {
        let owner = self.owner.as_ref();
        let place = or_dash(owner.map(|it| it.place.clone()));
        [self.tag.clone(), self.slot.to_string(), place, or_dash(owner.map(Owner::short_id))]
    }

    /// For a table: how sure that is, and how the master is set up.
    pub(crate) fn state_cells(&self) -> [String; 5] {
        let owner = self.owner.as_ref();
        let of_all = |it: &Owner| match it.connected {
            Some(connected) if it.replicas > 0 => {
                format!("{connected} of {} connected", it.replicas)
            }
            _ => it.replicas.to_string(),
        };
        let Support { named, needed, of } = self.support;
        let coverage = |required: bool| if required { "yes" } else { "no" };
        [
            or_dash(owner.map(|it| it.epoch)),
            format!("{named} of {of} nodes, {needed} needed"),
            or_dash(owner.map(of_all)),
            or_dash(owner.and_then(|it| it.node_timeout_ms).map(time::of_ms)),
            or_dash(owner.and_then(|it| it.full_coverage).map(coverage)),
        ]
    }

    /// Why nobody knows the owner: as many nodes name the same one.
    fn lack(&self) -> String {
        let Support { named, needed, of } = self.support;
        format!("{named} of {of} nodes name the master, {needed} needed")
    }
}

impl Owner {
    /// What is known of it, best by itself.
    fn find(owner: ownership::Owner<Place>, known: &[Known<'_>]) -> Self {
        let ownership::Owner { place: (id, place), epoch } = owner;
        let own = known.iter().find(|it| it.map.myself().id == id);
        let map = own.or_else(|| known.first()).map(|it| &it.map);
        let replicas = map.map_or(0, |it| it.all().filter(|it| it.follows(id)).count());
        let is_down =
            known.iter().flat_map(|it| it.map.all()).any(|it| it.id == id && it.has("fail"));
        let report = own.map(|it| it.report);
        let node_timeout_ms = report.and_then(|it| it.number(NODE_TIMEOUT));
        let full_coverage = report.and_then(|it| it.setting(FULL_COVERAGE)).map(|it| it == "yes");
        let connected = report.and_then(|it| it.connected);
        Self { place, id, epoch, is_down, replicas, connected, node_timeout_ms, full_coverage }
    }

    /// For people: the beginning of its id.
    fn short_id(&self) -> &str {
        &self.id.as_str()[..8]
    }

    /// For people: where it is, and the beginning of its id.
    fn words(&self) -> String {
        format!("{} ({})", self.place, self.short_id())
    }
}

impl Report {
    fn read(connection: &mut Connection) -> RedisResult<Self> {
        let map = cmd("CLUSTER").arg("NODES").query(connection)?;
        let mut settings = BTreeMap::new();
        for pattern in ["cluster-*", "min-replicas-*", "maxmemory*"] {
            let told = cmd("CONFIG").arg("GET").arg(pattern).query(connection);
            settings.extend(allowed::<BTreeMap<String, String>>(told)?.unwrap_or_default());
        }
        let told = allowed::<String>(cmd("INFO").arg("REPLICATION").query(connection))?;
        let is_online = |it: &&str| it.starts_with("slave") && it.contains("state=online");
        let connected = told.map(|it| it.lines().filter(is_online).count());
        Ok(Self { map, settings, connected })
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.parse().ok()
    }
}

fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |it| it.to_string())
}

/// None if the node refuses to answer. Managed services have no CONFIG.
fn allowed<T>(told: RedisResult<T>) -> RedisResult<Option<T>> {
    match told {
        Ok(told) => Ok(Some(told)),
        Err(error) if error.is_io_error() || error.is_unrecoverable_error() => Err(error),
        Err(_) => Ok(None),
    }
}

/// Why a node gave no answer.
fn words(error: &RedisError) -> String {
    if error.to_string().contains("cluster support disabled") {
        return DISABLED.to_owned();
    }
    match error.code() {
        Some("NOPERM") => FORBIDDEN.to_owned(),
        _ => survey::words(error),
    }
}
