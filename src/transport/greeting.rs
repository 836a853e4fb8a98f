//! The first words on a new connection: who we are, which database, and what the server can do.

use redis::Value;

use super::command::{self, Dialect, PROBES};
use super::failure::Failure;
use super::login::Credentials;

/// The dialogue, sent in one go, and how far it is answered.
pub(super) struct Greeting {
    bytes: Vec<u8>,
    logs_in: bool,
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
    pub(super) fn new(credentials: Option<&Credentials>, database: i64) -> Self {
        let mut bytes = Vec::new();
        let mut oaths = 0;
        if let Some(Credentials { user, password }) = credentials {
            let mut auth = redis::cmd("AUTH");
            if let Some(user) = user {
                auth.arg(user);
            }
            auth.arg(password).write_packed_command(&mut bytes);
            oaths += 1;
        }
        if database != 0 {
            redis::cmd("SELECT").arg(database).write_packed_command(&mut bytes);
            oaths += 1;
        }
        bytes.extend(command::probe());
        let logs_in = credentials.is_some();
        Self { bytes, logs_in, oaths, answered: 0, dialect: Dialect::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the next reply is about the user and the password.
    pub(super) fn is_at_login(&self) -> bool {
        self.logs_in && self.answered == 0
    }

    /// Whether nothing of it has been answered.
    pub(super) fn is_at_beginning(&self) -> bool {
        self.answered == 0
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

    /// Whether this reply means that the server is of no use to us, for now.
    fn refusal(&self, reply: &Value) -> Option<Failure> {
        let is_last = self.answered + 1 == self.oaths + PROBES;
        match reply {
            Value::ServerError(error) => {
                // Whoever has no room for us says so to the first command, whatever it is.
                let is_full =
                    error.details().is_some_and(|it| it.contains("max number of clients"));
                let is_meant = self.answered < self.oaths || is_full || error.code() == "DENIED";
                let is_meant = is_meant || (is_last && error.code() != "NOPERM");
                is_meant.then(|| Failure::of_reply(error))
            }
            Value::Okay if self.answered < self.oaths => None,
            Value::SimpleString(word) if is_last && word == "PONG" => None,
            _ => Some(Failure::Nonsense),
        }
    }
}
