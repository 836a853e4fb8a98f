//! `redlock doctor`: shows what the servers are, and what is wrong with them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use redlock::{Error, Manager, ServerInfo, Trouble};
use serde_json::{Value, json};

use crate::cli::Common;
use crate::cluster::{self, Cluster, Voter};
use crate::failure::{Failure, Kind};
use crate::output::{self, harmless};
use crate::sentinels::{self, Said};
use crate::servers::Servers;
use crate::table::Table;
use crate::time;

/// How long the other servers may take to connect once a quorum is up.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Beyond this, a clock is reported as far from ours, and a round trip as long.
const OFFSET_MAX_US: i64 = 1_000_000;
const ROUND_TRIP_MAX: Duration = Duration::from_millis(50);

/// A remark about something, and whether it is a fault.
struct Finding {
    is_fault: bool,
    advice: String,
}

/// Everything that was found out.
struct Found {
    servers: Vec<ServerInfo>,
    /// For each server.
    findings: Vec<Vec<Finding>>,
    of_all: Vec<Finding>,
    /// What the Sentinels of all masters say.
    said: Vec<Said>,
    of_sentinels: Vec<(String, Finding)>,
    /// What the nodes of all clusters say.
    clusters: Vec<Cluster>,
    of_clusters: Vec<(String, Finding)>,
    is_well: bool,
}

pub(crate) fn doctor(common: &Common) -> Result<ExitCode, Failure> {
    // With fencing tokens, connecting finds out whether servers can draw them.
    let named = Servers::find(common)?;
    let manager = named.builder(common)?.fencing(true).build()?;
    let unreachable = look(&manager).err();
    if let Some(error) =
        unreachable.as_ref().filter(|it| it.status() != redlock::Status::Unreachable)
    {
        return Err(error.clone().into());
    }
    let servers = manager.servers();
    let findings: Vec<Vec<Finding>> = servers.iter().map(examine).collect();
    let of_all = examine_all(&servers);
    let said = sentinels::ask(&named.config, &named.named());
    let clusters = Cluster::ask_all(&named.config, &named.named());
    let finding = |(name, is_fault, advice)| (name, Finding { is_fault, advice });
    let of_sentinels: Vec<_> = sentinels::examine(&said).into_iter().map(finding).collect();
    let of_clusters: Vec<_> = cluster::examine(&clusters).into_iter().map(finding).collect();
    let of_watched = of_sentinels.iter().chain(&of_clusters).map(|it| &it.1);
    let is_well = findings.iter().flatten().chain(&of_all).chain(of_watched).all(|it| !it.is_fault);
    let found =
        Found { servers, findings, of_all, said, of_sentinels, clusters, of_clusters, is_well };
    if common.json {
        output::print_line(as_json(&found))?;
    } else {
        output::print(page(&found))?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { Kind::Unwell.into() })
}

/// Connects to all servers that can be reached in time, and sends them some requests.
fn look(manager: &Manager) -> Result<(), Error> {
    let connected = manager.connect(Duration::ZERO);
    let end = Instant::now() + PATIENCE;
    while connected.is_ok() && Instant::now() < end {
        if manager.servers().iter().all(|it| it.is_connected) {
            break;
        }
        manager.drive_for(Duration::from_millis(20))?;
    }
    for _ in 0..3 {
        // The content of the answers does not matter, only that they come, and when.
        let _ = manager.inspect("redlock:doctor");
        // The call returns with a quorum. This reads the answers of the other servers when they come.
        manager.drive_for(Duration::from_millis(10))?;
    }
    connected.map(drop)
}

fn examine(server: &ServerInfo) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut say =
        |is_fault, advice: &str| found.push(Finding { is_fault, advice: advice.to_owned() });
    let words = server.words.as_str();
    if !server.is_connected || !server.has_vote {
        say(true, cure(server.trouble, server.is_connected));
        return found;
    }
    if server.clock_offset_us.is_some_and(|it| it.abs() > OFFSET_MAX_US) {
        say(true, "clock differs from this machine by more than a second: run NTP on both");
    }
    if server.round_trip.is_some_and(|it| it > ROUND_TRIP_MAX) {
        say(
            false,
            "slow to reply: keep a majority of the servers near, because a lock waits for the fastest majority",
        );
    }
    if server.keeps == "no log" {
        say(
            false,
            "no vote for a while after a restart: set appendonly yes and appendfsync always to avoid that",
        );
    } else if server.keeps.starts_with("log") && server.keeps != "log, synced always" {
        say(
            false,
            "may lose locks in a crash, and then has no vote for a while: set appendfsync always to avoid that",
        );
    }
    if !words.is_empty() {
        say(server.trouble.is_some(), words);
    }
    found
}

/// What to do about a server that cannot be reached, or has no vote.
fn cure(trouble: Option<Trouble>, is_connected: bool) -> &'static str {
    match trouble.unwrap_or(Trouble::Other) {
        Trouble::MayEvict => {
            "run CONFIG SET maxmemory-policy noeviction, and set it in the configuration file"
        }
        Trouble::Replica => "use its primary, or a redis-sentinel:// URL",
        Trouble::Sentinel => "use redis-sentinel://HOSTS/MASTER",
        Trouble::GuardKey => "delete the key redlock:guard, and find out which program uses it",
        Trouble::NewerVersion => "upgrade redlock",
        Trouble::LostData => {
            "wait: the vote counts again without any action; start all new servers before the first client, and none waits"
        }
        Trouble::ClockJumped => {
            "wait: the vote counts again without any action; find out what set the clock"
        }
        Trouble::ConnectionRefused => "start the server, or correct the address and the port",
        Trouble::UnknownName => "correct the host name, or its entry in the DNS",
        Trouble::OwnerUnknown => "see below what the Sentinels, or the nodes of the cluster, say",
        Trouble::NoPassword => "set REDLOCK_PASSWORD, or the password in the configuration file",
        Trouble::WrongPassword => "correct the user or the password",
        Trouble::NoPermission => {
            "grant the right with ACL SETUSER: the page about TLS and passwords lists what a user needs"
        }
        Trouble::Certificate => "set tls_ca to the file with the CA certificate of the servers",
        Trouble::SameServer => "list each server once, and one tag for each master of a cluster",
        _ if is_connected => "see the reason in the table",
        _ => "check that the server runs, and that no firewall blocks it",
    }
}

fn examine_all(servers: &[ServerInfo]) -> Vec<Finding> {
    let (all, quorum) = (servers.len(), servers.len() / 2 + 1);
    let votes = servers.iter().filter(|it| it.has_vote).count();
    let mut found = Vec::new();
    let mut say = |is_fault, advice: String| found.push(Finding { is_fault, advice });
    if votes < quorum {
        say(true, format!("{votes} of {all} servers vote, {quorum} needed: nothing can be locked"));
    } else if votes == quorum && all > 1 {
        say(false, format!("{votes} servers vote, just a quorum: no other server may fail"));
    }
    match all {
        1 => say(
            false,
            "with one server, locks are lost when it fails: use three or five".to_owned(),
        ),
        even if even % 2 == 0 => {
            say(false, format!("{even} servers tolerate no more failures than {}", even - 1));
        }
        _ => {}
    }
    found
}

fn page(found: &Found) -> String {
    let Found { servers, findings, of_all, of_sentinels, of_clusters, .. } = found;
    let mut page = format!("{}\n", table_of(servers));
    if !found.said.is_empty() {
        page += &format!("{}\n", table_of_sentinels(&found.said));
    }
    if !found.clusters.is_empty() {
        page += &format!("{}\n", table_of_voters(voters(&found.clusters)));
    }
    let named = servers.iter().zip(findings);
    let each = named.flat_map(|(server, found)| found.iter().map(|it| (server.name.as_str(), it)));
    let watched = of_sentinels.iter().chain(of_clusters).map(|(name, it)| (name.as_str(), it));
    for (name, finding) in each.chain(watched).chain(of_all.iter().map(|it| ("all", it))) {
        let mark = if finding.is_fault { "wrong" } else { "hint " };
        page += &format!("{mark}  {}: {}\n", harmless(name), harmless(&finding.advice));
    }
    page + if found.is_well { "all is well\n" } else { "problems found\n" }
}

fn table_of(servers: &[ServerInfo]) -> Table {
    let mut table = Table::new([
        "SERVER",
        "VERSION",
        "ROLE",
        "KEEPS",
        "WHEN FULL",
        "ROUND TRIP",
        "CLOCK",
        "VOTE",
        "",
    ]);
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    for server in servers {
        table.row([
            server.name.clone(),
            or_dash(&server.version),
            or_dash(&server.role),
            or_dash(&server.keeps),
            or_dash(&server.eviction),
            server.round_trip.map_or_else(|| "-".to_owned(), time::short),
            server.clock_offset_us.map_or_else(|| "-".to_owned(), offset),
            if server.has_vote { "yes".to_owned() } else { "no".to_owned() },
            if server.has_vote { String::new() } else { server.words.clone() },
        ]);
    }
    table
}

fn table_of_sentinels(said: &[Said]) -> Table {
    let mut table = Table::new(["SENTINEL", "WATCHES", "MASTER", "EPOCH", "OTHERS", "STATE"]);
    for it in said {
        let name = it.sentinel.clone();
        table.row(match &it.report {
            Ok(report) => {
                let (epoch, others) = (report.epoch.to_string(), report.others.to_string());
                let state = report.flags.clone();
                [name, it.master.clone(), report.address.clone(), epoch, others, state]
            }
            Err(why) => {
                let none = || "-".to_owned();
                [name, it.master.clone(), none(), none(), none(), why.clone()]
            }
        });
    }
    table
}

/// The slots of these clusters that are voters.
fn voters(clusters: &[Cluster]) -> impl Iterator<Item = &Voter> {
    clusters.iter().flat_map(Cluster::voters)
}

fn table_of_voters<'a>(voters: impl Iterator<Item = &'a Voter>) -> Table {
    let mut table = Table::new([
        "TAG",
        "SLOT",
        "MASTER",
        "NODE",
        "EPOCH",
        "NAMED BY",
        "REPLICAS",
        "NODE TIMEOUT",
        "FULL COVERAGE",
    ]);
    for it in voters {
        let [tag, slot, master, node] = it.place_cells();
        let [epoch, named, replicas, timeout, coverage] = it.state_cells();
        table.row([tag, slot, master, node, epoch, named, replicas, timeout, coverage]);
    }
    table
}

fn offset(us: i64) -> String {
    #[allow(clippy::cast_precision_loss)]
    let ms = us as f64 / 1000.0;
    format!("{ms:+.1} ms")
}

fn as_json(found: &Found) -> Value {
    let Found { servers, findings, of_all, of_sentinels, of_clusters, is_well, .. } = found;
    let advice = |found: &[Finding]| {
        let each = found.iter().map(|it| json!({"fault": it.is_fault, "words": it.advice}));
        Value::from(each.collect::<Vec<_>>())
    };
    let servers: Vec<Value> = servers
        .iter()
        .zip(findings)
        .map(|(it, found)| {
            json!({"name": it.name, "connected": it.is_connected, "votes": it.has_vote,
                "words": it.words,
                "version": it.version, "role": it.role, "run_id": it.run_id, "keeps": it.keeps,
                "eviction": it.eviction, "round_trip_us": it.round_trip.map(|it| it.as_micros()),
                "clock_offset_us": it.clock_offset_us, "advice": advice(found)})
        })
        .collect();
    let of_master = |(master, it): &(String, Finding)| json!({"master": master, "fault": it.is_fault, "words": it.advice});
    let of_cluster = |(name, it): &(String, Finding)| json!({"name": name, "fault": it.is_fault, "words": it.advice});
    json!({"well": is_well, "quorum": servers.len() / 2 + 1, "servers": servers, "advice": advice(of_all),
        "sentinels": found.said.iter().map(of_sentinel).collect::<Vec<_>>(),
        "sentinel_advice": of_sentinels.iter().map(of_master).collect::<Vec<_>>(),
        "tags": voters(&found.clusters).map(Voter::as_json).collect::<Vec<_>>(),
        "cluster_advice": of_clusters.iter().map(of_cluster).collect::<Vec<_>>()})
}

fn of_sentinel(it: &Said) -> Value {
    match &it.report {
        Ok(report) => json!({"name": it.sentinel, "master": it.master, "listed": it.is_listed,
            "address": report.address, "epoch": report.epoch, "others": report.others,
            "quorum": report.quorum, "state": report.flags, "words": ""}),
        Err(why) => json!({"name": it.sentinel, "master": it.master, "listed": it.is_listed,
            "words": why}),
    }
}
