//! What is wrong with a cluster, and what could be better.

use std::collections::{BTreeMap, BTreeSet};

use super::tags::first_tags;
use super::{
    Cluster, DISABLED, EVICTION, FORBIDDEN, FULL_COVERAGE, Known, MAX_LAG, MEMORY, MIN_REPLICAS,
    NODE_TIMEOUT, Owner, Report, Voter, newest,
};
use crate::time;

/// What is recommended: docs/cluster.md.
const NODE_TIMEOUT_MAX_MS: u64 = 15_000;
const MAX_LAG_MAX_S: u64 = 2;
const REPLICAS_MAX: usize = 2;
const NO_EVICTION: &str = "noeviction";

/// Whether it is a fault, and what to do.
type Advice = (bool, String);

/// A setting that is recommended.
struct Rule {
    on: On,
    /// The setting and its value, if it is not as recommended.
    differs: fn(&Report) -> Option<String>,
    /// What follows, and what to do.
    advice: &'static str,
}

/// The nodes to which a rule applies.
#[derive(Clone, Copy)]
enum On {
    All,
    /// All, if the cluster has several voters.
    AllOfSeveralVoters,
    /// The masters of the tags that have replicas, and these.
    Replicated,
    Replicas,
}

const RULES: [Rule; 5] = [
    Rule {
        on: On::All,
        differs: |it| {
            let ms = it.number(NODE_TIMEOUT).filter(|&ms| ms > NODE_TIMEOUT_MAX_MS)?;
            Some(format!("{NODE_TIMEOUT} is {}", time::of_ms(ms)))
        },
        advice: "for so long, a lost master is not replaced, and its tag has no vote: set 15000 or less",
    },
    Rule {
        on: On::AllOfSeveralVoters,
        differs: |it| {
            it.setting(FULL_COVERAGE).filter(|it| *it == "yes")?;
            Some(format!("{FULL_COVERAGE} is yes"))
        },
        advice: "if one master is lost, no tag of the cluster has a vote: set no",
    },
    Rule {
        on: On::Replicated,
        differs: |it| {
            let is_off = |name: &&str| it.number(name) == Some(0);
            Some(format!("{} is 0", [MIN_REPLICAS, MAX_LAG].iter().find(|it| is_off(it))?))
        },
        advice: "a master that has lost its replicas grants locks that a failover loses: set min-replicas-to-write 1 and min-replicas-max-lag 2",
    },
    Rule {
        on: On::Replicated,
        differs: |it| {
            it.number(MIN_REPLICAS).filter(|&count| count > 0)?;
            let lag = it.number(MAX_LAG).filter(|&lag| lag > MAX_LAG_MAX_S)?;
            Some(format!("{MAX_LAG} is {lag}"))
        },
        advice: "for so many seconds, a master that has lost its replicas grants locks that a failover loses: set 2",
    },
    Rule {
        // Of a master, the library says it.
        on: On::Replicas,
        differs: |it| {
            it.number(MEMORY).filter(|&limit| limit > 0)?;
            let policy = it.setting(EVICTION).filter(|it| *it != NO_EVICTION)?;
            Some(format!("{EVICTION} is {policy}"))
        },
        advice: "such a replica has no vote once it is the master: set noeviction",
    },
];

impl On {
    fn includes(self, cluster: &Cluster, node: &Known<'_>) -> bool {
        let myself = node.map.myself();
        let owners = || cluster.voters.iter().filter_map(|it| it.owner.as_ref());
        let is_replica = || owners().any(|it| myself.follows(it.id));
        match self {
            Self::All => true,
            Self::AllOfSeveralVoters => cluster.voters.len() > 1,
            Self::Replicas => is_replica(),
            Self::Replicated => {
                is_replica() || owners().any(|it| it.id == myself.id && it.replicas > 0)
            }
        }
    }
}

/// What is wrong with each cluster: the name of the cluster or of the tag, whether it is a fault, and what to do.
pub(crate) fn examine(clusters: &[Cluster]) -> Vec<(String, bool, String)> {
    let mut found = Vec::new();
    for cluster in clusters {
        let known = cluster.known();
        for voter in &cluster.voters {
            let advice = of_owner(cluster, voter, &known).or_else(|| of_replicas(voter));
            let name = || format!("tag {}", voter.tag);
            found.extend(advice.map(|(is_fault, words)| (name(), is_fault, words)));
        }
        let each = of_silence(cluster, &known).into_iter().chain(of_sharing(cluster, &known));
        let each = each.chain(of_settings(cluster, &known)).chain(of_rights(&known));
        found.extend(each.map(|(is_fault, words)| (cluster.name(), is_fault, words)));
    }
    found
}

fn of_silence(cluster: &Cluster, known: &[Known<'_>]) -> Option<Advice> {
    let said = cluster.said.iter().filter_map(|it| Some((&*it.node, it.report.as_ref().err()?)));
    let those = |why: &str| {
        let nodes = said.clone().filter(|it| it.1 == why).map(|it| it.0);
        Some(nodes.collect::<Vec<_>>().join(", ")).filter(|it| !it.is_empty())
    };
    if let Some(nodes) = those(DISABLED) {
        let advice = "name nodes of a cluster, or use redis:// for a server that is none";
        return Some((true, format!("{DISABLED} on {nodes}: {advice}")));
    }
    if let Some(nodes) = those(FORBIDDEN) {
        return Some((true, format!("{FORBIDDEN} on {nodes}: grant +cluster|nodes")));
    }
    let silence = cluster.silence();
    if silence.is_empty() {
        return None;
    }
    Some(match known.is_empty() {
        true => (true, format!("no node answers: start them, or correct the URL: {silence}")),
        false => (false, format!("start the nodes that do not answer: {silence}")),
    })
}

/// A majority of all nodes must name one master.
fn of_owner(cluster: &Cluster, voter: &Voter, known: &[Known<'_>]) -> Option<Advice> {
    if let Some(owner) = &voter.owner {
        let advice = "start it, unless a replica takes its place";
        let words =
            || format!("its master {} has failed, as the nodes say: {advice}", owner.words());
        return owner.is_down.then(|| (true, words()));
    }
    let named = known.iter().filter_map(|it| Some((it.node, cluster.named_by(it, voter.slot)?.0)));
    let named: Vec<_> = named.map(|(node, it)| (node, (it.place.1, it.epoch))).collect();
    let masters: BTreeSet<_> = named.iter().map(|it| &it.1).collect();
    let words = match masters.len() {
        // What is wrong with the nodes is said of the cluster.
        0 if known.is_empty() => return None,
        0 => format!("no node owns its slot {}: run redis-cli --cluster fix", voter.slot),
        1 => format!("{}: start the others", voter.lack()),
        _ => {
            let one = |(node, (place, epoch)): &(&str, (String, u64))| {
                format!("{node} names {place} (epoch {epoch})")
            };
            let each = named.iter().map(one).collect::<Vec<_>>().join(", ");
            format!("the nodes do not name the same master: {each}")
        }
    };
    Some((true, words))
}

fn of_replicas(voter: &Voter) -> Option<Advice> {
    let owner = voter.owner.as_ref()?;
    let words = match (owner.replicas, owner.connected) {
        (0, _) => "its master has no replica, so without the master it has no vote: add one or two"
            .to_owned(),
        (all, Some(connected)) if connected < all => {
            format!("{connected} of {all} replicas are connected to its master: start the others")
        }
        (all, _) if all > REPLICAS_MAX => format!(
            "its master has {all} replicas: two are enough, and clients ask each of them about once a second"
        ),
        _ => return None,
    };
    Some((false, words))
}

/// Tags on one master are one voter.
fn of_sharing(cluster: &Cluster, known: &[Known<'_>]) -> Vec<Advice> {
    let mut groups: Vec<(&Owner, Vec<&str>)> = Vec::new();
    for voter in &cluster.voters {
        let Some(owner) = &voter.owner else { continue };
        match groups.iter_mut().find(|it| it.0.id == owner.id) {
            Some((_, tags)) => tags.push(&voter.tag),
            None => groups.push((owner, vec![&voter.tag])),
        }
    }
    let suggested = newest(known).into_iter().flat_map(first_tags);
    let mut unused = suggested.filter(|it| groups.iter().all(|(owner, _)| owner.id != it.2.id));
    let mut instead_of = |tag: &&str| match unused.next() {
        Some((other, _, owner)) => {
            let place = cluster.place_of(owner).unwrap_or_default();
            format!("use tag {other} ({place}) instead of {tag}")
        }
        None => format!("leave out tag {tag}, because no other master has slots"),
    };
    let mut found = Vec::new();
    for (owner, tags) in groups.iter().filter(|it| it.1.len() > 1) {
        let instead = tags[1..].iter().map(&mut instead_of).collect::<Vec<_>>().join(", ");
        let (tags, master) = (tags.join(" and "), owner.words());
        let words = format!("tags {tags} are on one master, {master}, so they have one vote");
        found.push((true, format!("{words}: {instead}")));
    }
    found
}

fn of_settings(cluster: &Cluster, known: &[Known<'_>]) -> Vec<Advice> {
    let mut found = Vec::new();
    for Rule { on, differs, advice } in &RULES {
        let mut by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for it in known.iter().filter(|it| on.includes(cluster, it)) {
            if let Some(value) = differs(it.report) {
                by_value.entry(value).or_default().push(it.node);
            }
        }
        let each = by_value.into_iter();
        found.extend(each.map(|(value, nodes)| {
            (false, format!("{value} on {}: {advice}", names(&nodes, known)))
        }));
    }
    found
}

/// Managed services have no CONFIG.
fn of_rights(known: &[Known<'_>]) -> Option<Advice> {
    let is_silent = |it: &&Known<'_>| it.report.setting(NODE_TIMEOUT).is_none();
    let silent: Vec<&str> = known.iter().filter(is_silent).map(|it| it.node).collect();
    let words = || {
        let settings = [NODE_TIMEOUT, FULL_COVERAGE, MIN_REPLICAS, MAX_LAG].join(", ");
        let nodes = names(&silent, known);
        format!(
            "CONFIG GET is refused on {nodes}, so {settings} and {EVICTION} are not known: grant +config|get, or see the settings of the service"
        )
    };
    (!silent.is_empty()).then(|| (false, words()))
}

/// The names of some nodes of those that have answered.
fn names(some: &[&str], all: &[Known<'_>]) -> String {
    let is_all = some.len() > 1 && some.len() == all.len();
    if is_all { format!("all {} nodes", all.len()) } else { some.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Report, Said};

    /// The id of a node of this number.
    fn id(number: usize) -> String {
        format!("{number:040x}")
    }

    /// Node 1 is the master of all slots; the others are its replicas. As this node says, the epoch is that.
    fn map(by: usize, count: usize, epoch: u64, flags: &str) -> String {
        let line = |number: usize| {
            let myself = if number == by { "myself," } else { "" };
            let rest = match number {
                1 => format!("{myself}{flags} - 0 0 {epoch} connected 0-16383"),
                _ => format!("{myself}slave {} 0 0 {epoch} connected", id(1)),
            };
            format!("{} 10.0.0.{number}:6379@16379 {rest}\n", id(number))
        };
        (1..=count).map(line).collect()
    }

    fn said(by: usize, map: String, settings: &[(&str, &str)]) -> Said {
        let settings = [(NODE_TIMEOUT, "15000")].iter().chain(settings);
        let settings = settings.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let connected = map.lines().count().checked_sub(1);
        let report = Report { map, settings: settings.collect(), connected };
        Said { node: format!("10.0.0.{by}:6379"), report: Ok(report) }
    }

    fn cluster(said: Vec<Said>, tags: &[&str]) -> Cluster {
        let seeds = vec!["10.0.0.1:6379".to_owned()];
        let (is_over_tls, login, voters) = (false, String::new(), Vec::new());
        let mut it = Cluster { is_over_tls, login, seeds, voters, said };
        it.voters = tags.iter().map(|tag| it.voter(tag, 1)).collect();
        it
    }

    /// The findings of this cluster of nodes that agree.
    fn found(count: usize, flags: &str, settings: &[(&str, &str)]) -> Vec<(String, bool, String)> {
        let each = (1..=count).map(|by| said(by, map(by, count, 1, flags), settings));
        examine(&[cluster(each.collect(), &["a"])])
    }

    #[test]
    fn a_cluster_as_recommended_is_well() {
        let settings = [
            (FULL_COVERAGE, "yes"),
            (MIN_REPLICAS, "1"),
            (MAX_LAG, "2"),
            (MEMORY, "0"),
            (EVICTION, "allkeys-lru"),
        ];
        for count in [2, 3] {
            assert_eq!(found(count, "master", &settings), []);
        }
    }

    #[test]
    fn more_replicas_than_two_are_not_needed() {
        let [(name, is_fault, words)] = &found(4, "master", &[])[..] else { panic!("one") };
        assert_eq!((name.as_str(), is_fault), ("tag a", &false));
        assert!(words.starts_with("its master has 3 replicas: two are enough"), "{words}");
    }

    /// A master that has none would refuse all writes.
    #[test]
    fn a_master_without_replicas_needs_no_connected_one() {
        let settings = [(MIN_REPLICAS, "0"), (MAX_LAG, "10")];
        let [(_, is_fault, words)] = &found(1, "master", &settings)[..] else { panic!("one") };
        assert!(!is_fault && words.contains("no replica"), "{words}");
    }

    #[test]
    fn a_setting_is_said_with_its_value() {
        for (name, value, words) in [
            (NODE_TIMEOUT, "15001", "cluster-node-timeout is 15001 ms on all 2 nodes"),
            (MIN_REPLICAS, "0", "min-replicas-to-write is 0 on all 2 nodes"),
            (MAX_LAG, "0", "min-replicas-max-lag is 0 on all 2 nodes"),
        ] {
            let found = found(2, "master", &[(name, value)]);
            let [(of, is_fault, said)] = &found[..] else { panic!("one: {found:?}") };
            assert_eq!((of.as_str(), is_fault), ("cluster 10.0.0.1:6379", &false));
            assert!(said.starts_with(words), "{said}");
        }
    }

    #[test]
    fn nodes_that_do_not_agree_are_quoted() {
        let said = [(1, 1), (2, 2)].map(|(by, epoch)| said(by, map(by, 2, epoch, "master"), &[]));
        let found = examine(&[cluster(said.into(), &["a"])]);
        let [(name, is_fault, words)] = &found[..] else { panic!("one: {found:?}") };
        assert_eq!((name.as_str(), is_fault), ("tag a", &true));
        let each = "10.0.0.1:6379 names 10.0.0.1:6379 (epoch 1), 10.0.0.2:6379 names 10.0.0.1:6379 (epoch 2)";
        assert_eq!(words, &format!("the nodes do not name the same master: {each}"));
    }

    #[test]
    fn a_node_that_does_not_know_its_address_is_where_it_was_asked() {
        let line = format!("{} :6379@16379 myself,master - 0 0 1 connected 0-16383\n", id(1));
        let it = cluster(vec![said(1, line, &[])], &["a"]);
        let owner = it.voters[0].owner.as_ref().expect("it is named");
        assert_eq!((owner.place.as_str(), owner.epoch), ("10.0.0.1:6379", 1));
        // One that has answered twice counts once.
        let count = |said| cluster(said, &["a"]).voters[0].support.named;
        let twice = || said(1, map(1, 2, 1, "master"), &[]);
        assert_eq!(count(vec![twice(), twice()]), 1);
    }
}
