//! The login on the servers. It is what their URLs say. For other servers it is what the manager was given,
//! either once or through a callback.

use std::sync::{Arc, Weak};

use crate::protocol::command::handshake::Credentials;

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
pub(crate) enum Shared {
    Nobody,
    Known(Credentials),
    Asked { user: Option<Vec<u8>>, source: WeakSource },
}

pub(crate) type WeakSource = Weak<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

impl Login {
    pub(crate) fn told(&self) -> Shared {
        match self {
            Self::Nobody => Shared::Nobody,
            Self::Known(credentials) => Shared::Known(credentials.clone()),
            Self::Asked { user, source } => {
                Shared::Asked { user: user.clone(), source: Arc::downgrade(source) }
            }
        }
    }
}
