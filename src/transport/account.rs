//! The login on one server: what its URL says, or what the manager was given, either once or through a
//! callback.

use std::sync::{Arc, Weak};

use super::security::Security;
use crate::protocol::command::handshake::Credentials;
use crate::protocol::conn::ask_schedule::AskSchedule;
use crate::protocol::conn::login::{PasswordSource, Shared, WeakSource};
use crate::protocol::moment::Moment;
use crate::protocol::servers::endpoint::Endpoint;

/// The login on one server.
pub(super) struct Account {
    server: String,
    user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
    access: Arc<Security>,
    /// The source that is asked, or was asked last.
    asked: Option<WeakSource>,
    /// The last answer, until the server refuses it. It is valid as long as the source is the same.
    answer: Option<Vec<u8>>,
    asking: AskSchedule,
}

/// The source to ask for a password, and for which server. It is dropped with no mutex held.
pub(crate) struct PasswordRequest {
    source: PasswordSource,
    server: String,
}

impl PasswordRequest {
    /// Asks for the password. This may take long.
    pub(crate) fn ask(&self) -> Option<Vec<u8>> {
        (self.source)(&self.server)
    }
}

impl Account {
    pub(super) fn new(endpoint: &Endpoint, access: Arc<Security>) -> Self {
        let bytes = |text: &str| text.as_bytes().to_owned();
        Self {
            server: endpoint.to_string(),
            user: endpoint.user().map(bytes),
            password: endpoint.password().map(bytes),
            access,
            asked: None,
            answer: None,
            asking: AskSchedule::new(),
        }
    }

    /// The credentials to log in with, if any.
    pub(super) fn credentials(&self) -> Result<Option<Credentials>, String> {
        if let Some(password) = &self.password {
            let (user, password) = (self.user.clone(), password.clone());
            return Ok(Some(Credentials { user, password }));
        }
        let told = match self.access.login().map_err(|error| error.to_string())? {
            Shared::Nobody => None,
            Shared::Known(credentials) => Some(credentials),
            Shared::Asked { user, source } => {
                let answer = self.answer_of(&source).cloned();
                let password = answer.ok_or("no password from the password callback yet")?;
                Some(Credentials { user, password })
            }
        };
        Ok(match (&self.user, told) {
            (None, told) => told,
            // A user without a known password may need none. `AUTH` requires one all the same.
            (user, told) => {
                let password = told.map(|credentials| credentials.password).unwrap_or_default();
                Some(Credentials { user: user.clone(), password })
            }
        })
    }

    /// Whether the password must be asked for before there can be a connection.
    pub(super) fn is_lacking(&self) -> bool {
        self.password.is_none()
            && self.access.asks()
            && matches!(self.access.login(), Ok(Shared::Asked { source, .. }) if self.answer_of(&source).is_none())
    }

    fn answer_of(&self, source: &WeakSource) -> Option<&Vec<u8>> {
        let is_same = self.asked.as_ref().is_some_and(|asked| Weak::ptr_eq(asked, source));
        self.answer.as_ref().filter(|_| is_same)
    }

    /// Whether some thread is asking at this moment.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_under_way()
    }

    /// The source to ask, if that is due; see [`Self::handle_answer`].
    pub(super) fn password_request(&mut self, now: Moment) -> Option<PasswordRequest> {
        if self.password.is_some() {
            return None;
        }
        let Ok(Shared::Asked { source, .. }) = self.access.login() else { return None };
        if self.answer_of(&source).is_some() || !self.asking.is_due(now) {
            return None;
        }
        // From here on the reference belongs to the asking thread, and is not dropped before.
        let asked = source.upgrade()?;
        self.asking.begin(now);
        self.asked = Some(source);
        self.answer = None;
        Some(PasswordRequest { source: asked, server: self.server.clone() })
    }

    pub(super) fn handle_answer(&mut self, answer: Option<Vec<u8>>, began: Moment, now: Moment) {
        self.asking.end(began, now);
        self.answer = answer;
    }

    /// The server does not accept the password, so it may have been changed.
    pub(super) fn handle_refusal(&mut self) {
        self.answer = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::conn::login::Login;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    fn account(url: &str, login: Login) -> Account {
        let access = Security::default();
        access.set_login(login).unwrap();
        Account::new(&Endpoint::parse(url, 0).unwrap(), Arc::new(access))
    }

    fn told(user: Option<&str>, password: &str) -> Credentials {
        Credentials { user: user.map(Into::into), password: password.into() }
    }

    #[test]
    fn a_url_overrides_the_settings() {
        let known = || Login::Known(told(Some("ann"), "a"));
        let who = |url, login| account(url, login).credentials().unwrap();
        assert_eq!(who("redis://h", Login::Nobody), None);
        assert_eq!(who("redis://h", known()), Some(told(Some("ann"), "a")));
        assert_eq!(who("redis://:p@h", known()), Some(told(None, "p")));
        assert_eq!(who("redis://u:p@h", known()), Some(told(Some("u"), "p")));
        assert_eq!(who("redis://u@h", known()), Some(told(Some("u"), "a")));
        assert_eq!(who("redis://u@h", Login::Nobody), Some(told(Some("u"), "")));
    }

    #[test]
    fn a_password_is_asked_for_again_only_after_a_refusal() {
        let source: PasswordSource = Arc::new(|server| Some(format!("of {server}").into()));
        let mut account = account("redis://h", Login::Asked { user: None, source });
        assert!(account.is_lacking() && account.credentials().is_err());
        let request = account.password_request(NOW).expect("somebody to ask");
        assert!(account.password_request(NOW).is_none(), "one asks at a time");
        account.handle_answer(request.ask(), NOW, NOW);
        assert_eq!(account.credentials(), Ok(Some(told(None, "of h:6379"))));
        assert!(account.password_request(NOW.plus_ms(100_000)).is_none() && !account.is_lacking());
        account.handle_refusal();
        assert!(account.password_request(NOW).is_none(), "who was asked just now is left alone");
        assert!(account.password_request(NOW.plus_ms(100_000)).is_some());
    }

    #[test]
    fn a_password_in_the_url_is_not_asked_for() {
        let source: PasswordSource = Arc::new(|_| unreachable!("nobody asks"));
        let mut account = account("redis://:p@h", Login::Asked { user: None, source });
        assert!(!account.is_lacking() && account.password_request(NOW).is_none());
    }
}
