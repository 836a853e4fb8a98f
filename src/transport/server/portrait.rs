//! What is known of a server, for a person or a monitor.

use super::Server;
use crate::command::identity::Identity;
use crate::moment::Moment;
use crate::stats::{ServerStats, Traffic};
use crate::transport::endpoint::Endpoint;
use crate::transport::link::NOT_TRIED;

/// A server as it is known now; nobody is asked.
#[derive(Clone, Debug)]
pub struct Portrait {
    /// Where it is, without the user and the password.
    pub name: String,
    pub is_connected: bool,
    /// Whether what it grants counts.
    pub has_vote: bool,
    /// Why it is not connected, or has no vote, or what is not known of it; empty if there is nothing to say.
    pub words: String,
    /// What it said of itself when it was last asked.
    pub identity: Identity,
    /// How long its last answer took, from sending to reading, in microseconds.
    pub round_trip_us: Option<i64>,
    /// How far its clock is ahead of this machine's, in microseconds.
    pub clock_offset_us: Option<i64>,
    /// What was sent to it and heard of it.
    pub traffic: Traffic,
}

impl From<Portrait> for ServerStats {
    fn from(portrait: Portrait) -> Self {
        let Portrait { name, is_connected, has_vote, clock_offset_us, traffic, .. } = portrait;
        Self { name, is_connected, has_vote, clock_offset_us, traffic }
    }
}

impl Portrait {
    /// Why it has no vote although it is connected, in words with its name.
    pub(crate) fn doubt(&self) -> Option<String> {
        let Self { name, words, .. } = self;
        (self.is_connected && !self.has_vote).then(|| format!("{name} {words}"))
    }

    /// Of one that nobody has needed yet.
    pub(crate) fn of_unknown(endpoint: &Endpoint) -> Self {
        Self {
            name: endpoint.to_string(),
            is_connected: false,
            has_vote: false,
            words: NOT_TRIED.to_owned(),
            identity: Identity::default(),
            round_trip_us: None,
            clock_offset_us: None,
            traffic: Traffic::default(),
        }
    }
}

impl Server {
    /// How long it took for its last answer.
    pub(crate) fn round_trip_us(&self) -> Option<i64> {
        self.queue.round_trip_us()
    }

    pub(crate) fn portrait(&self, now: Moment, wall_us: i64) -> Portrait {
        let is_connected = self.link.is_up() || self.is_stuck();
        let queue = match &self.predecessor {
            Some(it) if !it.is_replaced => &it.queue,
            _ => &self.queue,
        };
        let doubt = queue.doubt(now);
        let words = match &doubt {
            _ if !is_connected => self.link.why_down().to_owned(),
            Some(doubt) => doubt.to_string(),
            None => queue.caveat().to_owned(),
        };
        Portrait {
            name: self.link.name(),
            is_connected,
            has_vote: is_connected && doubt.is_none(),
            words,
            identity: self.link.identity().clone(),
            round_trip_us: self.queue.round_trip_us(),
            clock_offset_us: self.queue.clock_offset_us(now, wall_us),
            traffic: self.traffic,
        }
    }
}
