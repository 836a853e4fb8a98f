//! The C function that sets for which language messages name arguments.

use super::call::manager_call;
use super::handle::RedLock;
use super::status::RedLockStatus;
use crate::protocol::argument::Language;
use crate::protocol::error::Error;

/// For RedLock_SetLanguage: C. Messages name arguments as this header does.
pub const REDLOCK_LANGUAGE_C: i32 = 0;

/// For RedLock_SetLanguage: C++, as redlock.hpp names arguments.
pub const REDLOCK_LANGUAGE_CPP: i32 = 1;

/// For RedLock_SetLanguage: Go.
pub const REDLOCK_LANGUAGE_GO: i32 = 2;

/// For RedLock_SetLanguage: JavaScript in Node.js.
pub const REDLOCK_LANGUAGE_NODE: i32 = 3;

/// For RedLock_SetLanguage: Python.
pub const REDLOCK_LANGUAGE_PYTHON: i32 = 4;

/// For RedLock_SetLanguage: Ruby.
pub const REDLOCK_LANGUAGE_RUBY: i32 = 5;

/// Sets for which language the messages of this manager name arguments and give times. Each binding of this
/// library calls this for its manager, so that a program in Python reads "ttl is 0 s" and not "ttl_ms is 0".
/// Programs in C do not need it.
///
/// @param rl       the manager.
/// @param language REDLOCK_LANGUAGE_C, the default, REDLOCK_LANGUAGE_CPP, REDLOCK_LANGUAGE_GO,
///                 REDLOCK_LANGUAGE_NODE, REDLOCK_LANGUAGE_PYTHON or REDLOCK_LANGUAGE_RUBY.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetLanguage(rl: *mut RedLock, language: i32) -> RedLockStatus {
    manager_call(rl, |handle| {
        handle.language.set(known(language)?);
        Ok(())
    })
}

fn known(language: i32) -> Result<Language, Error> {
    Ok(match language {
        REDLOCK_LANGUAGE_C => Language::C,
        REDLOCK_LANGUAGE_CPP => Language::Cpp,
        REDLOCK_LANGUAGE_GO => Language::Go,
        REDLOCK_LANGUAGE_NODE => Language::Node,
        REDLOCK_LANGUAGE_PYTHON => Language::Python,
        REDLOCK_LANGUAGE_RUBY => Language::Ruby,
        _ => {
            let words = format!("language is {language}: use a REDLOCK_LANGUAGE_ constant");
            return Err(Error::invalid(words));
        }
    })
}
