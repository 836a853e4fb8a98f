//! What is known of a server, for a person or a monitor.

use super::Server;
use crate::command::identity::Identity;
use crate::moment::Moment;
use crate::stats::{ServerStats, Traffic};
use crate::transport::endpoint::Endpoint;
use crate::transport::link::NOT_TRIED;
use crate::transport::queue::Queue;
use crate::transport::why::Why;
use crate::trouble::Trouble;

const CLUSTER_NODE: &str =
    "cluster node: replies MOVED for keys of other nodes, and CROSSSLOT for keys of several slots";

/// The state of a server as it is known now. Taking a snapshot sends no request.
#[derive(Clone, Debug)]
pub struct ServerSnapshot {
    /// The server's place, without the user and the password.
    pub name: String,
    pub is_connected: bool,
    /// Whether what the server grants counts.
    pub has_vote: bool,
    /// Why the server is not connected or has no vote, or what is not known of it. Empty if there is nothing
    /// to say.
    pub words: String,
    /// The same for programs, of a server that is not connected, has no vote, or lacks its fencing counters.
    pub trouble: Option<Trouble>,
    /// What the server said about itself when it was last asked.
    pub identity: Identity,
    /// How long the last answer took, from sending to reading, in microseconds.
    pub round_trip_us: Option<i64>,
    /// How far the server's clock is ahead of this machine's, in microseconds.
    pub clock_offset_us: Option<i64>,
    /// What was sent to the server and received from it.
    pub traffic: Traffic,
}

impl From<ServerSnapshot> for ServerStats {
    fn from(snapshot: ServerSnapshot) -> Self {
        let ServerSnapshot { name, is_connected, has_vote, clock_offset_us, traffic, .. } =
            snapshot;
        Self { name, is_connected, has_vote, clock_offset_us, traffic }
    }
}

impl ServerSnapshot {
    /// Why the server has no vote although it is connected, or what is wrong with its vote, in words with its name.
    pub(crate) fn remark(&self) -> Option<String> {
        let Self { name, words, .. } = self;
        (self.is_connected && !words.is_empty()).then(|| format!("{name} {words}"))
    }

    /// The snapshot of a server that no caller has needed yet.
    pub(crate) fn of_unknown(endpoint: &Endpoint) -> Self {
        Self {
            name: endpoint.to_string(),
            is_connected: false,
            has_vote: false,
            words: NOT_TRIED.to_owned(),
            trouble: Some(Trouble::Other),
            identity: Identity::default(),
            round_trip_us: None,
            clock_offset_us: None,
            traffic: Traffic::default(),
        }
    }
}

impl Server {
    /// How long the server's last answer took.
    pub(crate) fn round_trip_us(&self) -> Option<i64> {
        self.queue.round_trip_us()
    }

    pub(crate) fn snapshot(&self, now: Moment, wall_us: i64) -> ServerSnapshot {
        let is_connected = self.link.is_up() || self.is_stuck();
        let queue = match &self.predecessor {
            Some(it) if !it.is_replaced => &it.queue,
            _ => &self.queue,
        };
        let doubt = queue.doubt(now);
        let why = match &doubt {
            _ if !is_connected => Some(self.link.why_down()),
            doubt => doubt.as_ref().map(Why::of_failure),
        };
        let (trouble, words) =
            why.map_or_else(|| self.caveat(queue), |it| (Some(it.trouble), it.words));
        ServerSnapshot {
            name: self.link.name(),
            is_connected,
            has_vote: is_connected && doubt.is_none(),
            words,
            trouble,
            identity: self.link.identity().clone(),
            round_trip_us: self.queue.round_trip_us(),
            clock_offset_us: self.queue.clock_offset_us(now, wall_us),
            traffic: self.traffic,
        }
    }

    /// What to report about the server although it has a vote.
    fn caveat(&self, queue: &Queue) -> (Option<Trouble>, String) {
        match queue.caveat() {
            caveat if !caveat.is_empty() => (queue.trouble(), caveat.into_owned()),
            _ if self.link.identity().is_cluster_node() => {
                (Some(Trouble::ClusterNode), CLUSTER_NODE.to_owned())
            }
            _ => (None, String::new()),
        }
    }
}
