//! The login on the servers. It is what their URLs say. For other servers it is what the manager was given,
//! either once or through a callback.

use std::sync::{Arc, Weak};

use crate::command::handshake::Credentials;

/// Returns the password for the server of this name, if there is one now.
pub type PasswordSource = Arc<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

/// The login for servers whose URL gives none.
#[derive(Clone, Default)]
pub enum Login {
    #[default]
    Nobody,
    Known(Credentials),
    Asked {
        user: Option<Vec<u8>>,
        source: PasswordSource,
    },
}

/// The same for an account, which reads it with mutexes held. A password source is foreign code and must not
/// be dropped there.
pub(super) enum Told {
    Nobody,
    Known(Credentials),
    Asked { user: Option<Vec<u8>>, source: WeakSource },
}

pub(super) type WeakSource = Weak<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

impl Login {
    pub(super) fn told(&self) -> Told {
        match self {
            Self::Nobody => Told::Nobody,
            Self::Known(credentials) => Told::Known(credentials.clone()),
            Self::Asked { user, source } => {
                Told::Asked { user: user.clone(), source: Arc::downgrade(source) }
            }
        }
    }
}
