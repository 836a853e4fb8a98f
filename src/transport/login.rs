//! Who we are on the servers: what their URLs say, and for those that say nothing what the manager
//! was told, once or whenever it asks.

use std::sync::{Arc, Weak};

use crate::command::handshake::Credentials;

/// Gives the password to the server of this name, if there is one now.
pub type PasswordSource = Arc<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

/// Who we are where a URL does not say.
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

/// The same for an account, which is looked at with mutexes taken: a source of passwords is somebody
/// else's code, and must not be dropped there.
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
