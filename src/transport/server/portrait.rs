//! What is known of a server, for a person or a monitor.

use super::Server;
use crate::command::identity::Identity;
use crate::transport::endpoint::Endpoint;
use crate::transport::link::NOT_TRIED;

/// A server as it is known now; nobody is asked.
#[derive(Clone, Debug)]
pub struct Portrait {
    /// Where it is, without the user and the password.
    pub name: String,
    pub is_connected: bool,
    /// Why it is not connected, or owes an answer; empty if there is nothing to say.
    pub words: String,
    /// What it said of itself when it was last asked.
    pub identity: Identity,
    /// How long its last answer took, from sending to reading, in microseconds.
    pub round_trip_us: Option<i64>,
}

impl Portrait {
    /// Of one that nobody has needed yet.
    pub(crate) fn of_unknown(endpoint: &Endpoint) -> Self {
        Self {
            name: endpoint.to_string(),
            is_connected: false,
            words: NOT_TRIED.to_owned(),
            identity: Identity::default(),
            round_trip_us: None,
        }
    }
}

impl Server {
    pub(crate) fn portrait(&self) -> Portrait {
        let is_connected = self.link.is_up() || self.is_stuck();
        let words = if is_connected { String::new() } else { self.link.why_down().to_owned() };
        Portrait {
            name: self.link.endpoint().to_string(),
            is_connected,
            words,
            identity: self.link.identity().clone(),
            round_trip_us: self.queue.round_trip_us(),
        }
    }
}
