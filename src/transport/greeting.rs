//! The first words on a new connection: who we are, which database, and what the server can do.

use redis::Value;

use super::command::{self, Dialect, PROBES};
use super::endpoint::Endpoint;
use super::failure::Failure;

/// The dialogue, sent in one go, and how far it is answered.
pub(super) struct Greeting {
    bytes: Vec<u8>,
    /// How many replies come before those to the probes; each has to be OK.
    oaths: usize,
    answered: usize,
    dialect: Dialect,
}

/// What a reply leads to.
pub(super) enum Progress {
    More,
    Done(Dialect),
    Refused(Failure),
}

impl Greeting {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let mut bytes = Vec::new();
        let mut oaths = 0;
        if let Some(password) = endpoint.password() {
            let mut auth = redis::cmd("AUTH");
            if let Some(user) = endpoint.user() {
                auth.arg(user);
            }
            auth.arg(password).write_packed_command(&mut bytes);
            oaths += 1;
        }
        if endpoint.database() != 0 {
            redis::cmd("SELECT").arg(endpoint.database()).write_packed_command(&mut bytes);
            oaths += 1;
        }
        bytes.extend(command::probe());
        Self { bytes, oaths, answered: 0, dialect: Dialect::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn handle_reply(&mut self, reply: &Value) -> Progress {
        if let Some(failure) = self.refusal(reply) {
            return Progress::Refused(failure);
        }
        if let Some(probe) = self.answered.checked_sub(self.oaths) {
            self.dialect.learn(probe, reply);
        }
        self.answered += 1;
        if self.answered < self.oaths + PROBES {
            Progress::More
        } else {
            Progress::Done(self.dialect)
        }
    }

    fn refusal(&self, reply: &Value) -> Option<Failure> {
        match reply {
            Value::Okay if self.answered < self.oaths => None,
            Value::ServerError(error) => {
                // A server that still loads, does not know us, or has no room for us, says so to
                // whatever it is asked.
                let is_final = ["LOADING", "NOAUTH", "DENIED"].contains(&error.code())
                    || error.details().is_some_and(|it| it.contains("max number of clients"));
                (is_final || self.answered < self.oaths).then(|| Failure::of_reply(error))
            }
            _ if self.answered < self.oaths => Some(Failure::Nonsense),
            _ => None,
        }
    }
}
