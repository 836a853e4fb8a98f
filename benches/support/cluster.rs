//! A cluster of three masters, and a tag on each of them.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Outcome;
use super::process::go_on;
use super::servers::{Role, Server, ask};

const PATIENCE: Duration = Duration::from_secs(10);

/// The slots of each master, and a tag whose slot is among them (`CLUSTER KEYSLOT '{b}'`). `beside.c` has the same tags.
const MASTERS: [(&str, char); 3] = [("0 5460", 'b'), ("5461 10922", 'c'), ("10923 16383", 'a')];

/// Ends all nodes when dropped.
pub(crate) struct Cluster(Vec<Server>);

impl Cluster {
    /// Its tags were in use before, so they have a vote at once.
    pub(crate) fn start(dir: &Path) -> Outcome<Self> {
        let nodes = MASTERS.iter().map(|_| Server::start(dir, &Role::Node));
        let nodes = nodes.collect::<Outcome<Vec<_>>>()?;
        for (epoch, (node, (slots, _))) in (1..).zip(nodes.iter().zip(MASTERS)) {
            ask(node.port, &format!("CLUSTER SET-CONFIG-EPOCH {epoch}"))?;
            ask(node.port, &format!("CLUSTER ADDSLOTSRANGE {slots}"))?;
            let first = &nodes[0];
            if node.port != first.port {
                ask(first.port, &format!("CLUSTER MEET 127.0.0.1 {} {}", node.port, node.bus))?;
            }
        }
        for (epoch, (node, (_, tag))) in (1..).zip(nodes.iter().zip(MASTERS)) {
            await_all_slots(node.port)?;
            be_in_use(node, tag, epoch)?;
        }
        Ok(Self(nodes))
    }

    /// With commas between them.
    pub(crate) fn ports(&self) -> String {
        self.0.iter().map(|it| it.port.to_string()).collect::<Vec<_>>().join(",")
    }
}

/// Writes a note of its memory, for locks with a TTL of up to a minute (docs/internals/guard.md).
fn be_in_use(node: &Server, tag: char, epoch: u64) -> Outcome<()> {
    let info = ask(node.port, "INFO server")?;
    let run_id = info.lines().find_map(|it| it.strip_prefix("run_id:")).ok_or("no run_id")?;
    let note = format!("1 {run_id} 1 -1 60000 {} e{epoch}", &run_id[..16]);
    ask(node.port, &format!("SET {{{tag}}}redlock:guard \"{note}\"")).map(drop)
}

fn await_all_slots(port: u16) -> Outcome<()> {
    let patience = Instant::now() + PATIENCE;
    while Instant::now() < patience {
        go_on()?;
        let state = ask(port, "CLUSTER INFO")?;
        if ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"]
            .iter()
            .all(|it| state.contains(it))
        {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err("the nodes of a cluster do not find each other within 10 s".into())
}
