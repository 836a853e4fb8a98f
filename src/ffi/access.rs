//! The C functions that say how servers are reached: who we are there, and whom we trust.

use std::ffi::{c_char, c_void};
use std::str;
use std::sync::Arc;

use super::arguments::{text, text_or_null};
use super::call::manager_call;
use super::callback::{RedLockDestroy, UserData};
use super::handle::RedLock;
use super::status::RedLockStatus;
use crate::error::Error;
use crate::system::cancellation::Uncancelled;
use crate::system::environment;
use crate::transport::login::PasswordSource;

/// Room for what a password callback writes, with its NUL. Tokens of identity providers, which some
/// servers take for passwords, have a few thousand bytes.
const PASSWORD_ROOM: usize = 16 * 1024;

/// Gives the password to a server. See RedLock_SetPasswordCallback.
///
/// @param server    the server as messages name it, such as "10.0.0.7:6379", or, for a master that Sentinels
///                  watch, its name and the first of them: "mymaster (Sentinel 10.0.0.5:26379)". Valid
///                  during the call.
/// @param password  room for the password, to be written as a string that ends with a NUL. It is
///                  all zero before, and again after the call.
/// @param size      the room in bytes, with that NUL: 16384.
/// @param user_data what was given to RedLock_SetPasswordCallback.
/// @return true if the password is written; false if there is none now: then the server counts as
///         not connected, and the callback is asked again a second later at the earliest.
pub type RedLockPasswordCallback = Option<
    unsafe extern "C" fn(
        server: *const c_char,
        password: *mut c_char,
        size: usize,
        user_data: *mut c_void,
    ) -> bool,
>;

/// Sets the user and the password for servers whose URLs name none. A URL that names both, or a
/// password alone, is not affected; one that names a user alone gets the password. Connections that
/// are there stay as they are. Nothing needs to be escaped here, as it does in a URL.
///
/// @param rl       the manager.
/// @param user     the name of an ACL user, or NULL for the default user. Not empty.
/// @param password the password, or NULL: with a user, for one that needs no password; with no user
///                 either, for no log-in at all, which is the default. Not empty.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetCredentials(
    rl: *mut RedLock,
    user: *const c_char,
    password: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let user = text_or_null(user, "user")?;
        handle.manager.set_credentials(user, text_or_null(password, "password")?)
    })
}

/// RedLock_SetCredentials with what two variables of the environment hold, so that neither stands in
/// a program or on a command line. They are read now, and not again. In a program that has more rights
/// than its user (setuid, setgid, capabilities) none is read: whoever starts that could choose who it
/// is to the servers.
///
/// @param rl                the manager.
/// @param user_variable     the name of the variable that holds the user, or NULL for the default
///                          user.
/// @param password_variable the name of the variable that holds the password.
/// @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if a variable is not set, or empty, or may not be
///         read; REDLOCK_FORKED. The message tells which of the two, and never a name or what it holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetCredentialsFromEnv(
    rl: *mut RedLock,
    user_variable: *const c_char,
    password_variable: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let of_variable = |name| variable(name, "user_variable");
        let user = text_or_null(user_variable, "user_variable")?.map(of_variable).transpose()?;
        let password = text(password_variable, "password_variable")?;
        let password = variable(password, "password_variable")?;
        handle.manager.set_credentials(user.as_deref(), Some(&password))
    })
}

/// Sets a function to be asked for the password of each server whose URL names none: when the server
/// is first connected to, and again when it did not accept the last answer, so a password may be
/// changed while the program runs. It is called only within calls to this library, on the thread
/// that made the call, with no mutex held, and never by two threads at once for one server.
/// RedLock_Lock and its like, and RedLock_Connect, ask before they begin; a call on a lock that is
/// held asks only if too few servers are connected. They wait for it, so it should be quick. It may
/// call this library, but not with the lease of the call that it is called in, which is in use; and on
/// this manager such a call waits for the answer in vain, up to the timeout for connecting. It may fork:
/// then the call ends in the child with REDLOCK_FORKED. It must not unwind (longjmp, throw) through the
/// library.
///
/// @param rl        the manager.
/// @param user      as for RedLock_SetCredentials.
/// @param callback  the function, or NULL to ask nobody and log in nowhere.
/// @param user_data handed to the function as it is; may be NULL. It must stay valid for as long as that
///                  of RedLock_SetLogger.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetPasswordCallback(
    rl: *mut RedLock,
    user: *const c_char,
    callback: RedLockPasswordCallback,
    user_data: *mut c_void,
) -> RedLockStatus {
    set_password_callback(rl, user, callback, UserData::new(user_data, None))
}

/// RedLock_SetPasswordCallback with a function that is told when nobody uses user_data any more.
///
/// @param rl        the manager.
/// @param user      as for RedLock_SetCredentials.
/// @param callback  as for RedLock_SetPasswordCallback.
/// @param user_data as for RedLock_SetPasswordCallback. It belongs to the manager from now on, also if
///                  this function fails.
/// @param destroy   as for RedLock_SetLoggerWithDestroy; RedLock_SetCredentials, too, replaces the
///                  callback.
/// @return as for RedLock_SetPasswordCallback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetPasswordCallbackWithDestroy(
    rl: *mut RedLock,
    user: *const c_char,
    callback: RedLockPasswordCallback,
    user_data: *mut c_void,
    destroy: RedLockDestroy,
) -> RedLockStatus {
    set_password_callback(rl, user, callback, UserData::new(user_data, destroy))
}

/// Sets who is trusted to say who a server is, for rediss:// servers. Connections that are there stay
/// as they are.
///
/// @param rl      the manager.
/// @param ca_file the path of a PEM file with certificates, which is read now (a FIFO is waited for):
///                those alone are trusted. NULL, the default: those whom the system trusts, where
///                its OpenSSL looks for them, or in SSL_CERT_FILE and SSL_CERT_DIR of the
///                environment. These are read by the first lock call. In a program that has more
///                rights than its user (setuid, setgid, capabilities) both variables are ignored, as
///                OpenSSL does.
/// @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if the file is of no use (the message says why, but
///         never the name: it might be the certificate or a key itself), or if this build has no TLS;
///         REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTlsCa(
    rl: *mut RedLock,
    ca_file: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.set_tls_ca(text_or_null(ca_file, "ca_file")?))
}

/// Sets the certificate for rediss:// servers that want to know who we are. Both files are read now;
/// set them again when they have changed. Connections that are there stay as they are.
///
/// @param rl               the manager.
/// @param certificate_file the path of a PEM file with our certificate, followed by those that lead
///                         up to one that the servers trust. NULL, the default, for none.
/// @param key_file         the path of a PEM file with its key, not encrypted. NULL if, and only if,
///                         the other is.
/// @return as for RedLock_SetTlsCa.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTlsCertificate(
    rl: *mut RedLock,
    certificate_file: *const c_char,
    key_file: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let certificate_file = text_or_null(certificate_file, "certificate_file")?;
        let key_file = text_or_null(key_file, "key_file")?;
        let files = match (certificate_file, key_file) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (Some(_), None) => {
                return Err(Error::invalid("key_file is NULL, but certificate_file is not"));
            }
            (None, Some(_)) => {
                return Err(Error::invalid("certificate_file is NULL, but key_file is not"));
            }
        };
        handle.manager.set_tls_certificate(files)
    })
}

/// Sets the name that the certificates of rediss:// servers have to be for, where that is not the host
/// in their URLs: with a tunnel, say, or with one certificate for all. Connections that are there
/// stay as they are.
///
/// @param rl   the manager.
/// @param name the name of a host, or an address. NULL, the default: for each server its own host.
/// @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if it can be no host's, or this build has no TLS;
///         REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTlsServerName(
    rl: *mut RedLock,
    name: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let name = text_or_null(name, "name")?.map(str::from_utf8).transpose();
        let name = name.map_err(|_| Error::invalid("name is not UTF-8"))?;
        handle.manager.set_tls_server_name(name)
    })
}

/// Sets whether rediss:// servers are believed to be who they say they are, without any proof (a
/// certificate that cannot be read, or is not of version 3, is refused all the same). Then
/// whoever is on the way to them can read all, passwords and tokens, and answer in their place. It is
/// for trying things out: where the certificates are your own, name them with RedLock_SetTlsCa.
///
/// @param rl   the manager.
/// @param skip true: nothing is verified. false, the default: everything is.
/// @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if this build has no TLS; REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTlsInsecureSkipVerify(
    rl: *mut RedLock,
    skip: bool,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.set_tls_insecure_skip_verify(skip))
}

/// What a variable of the environment holds. The words do not quote its name: somebody may have passed
/// what it holds.
fn variable(name: &[u8], argument: &str) -> Result<Vec<u8>, Error> {
    if environment::is_foreign() {
        return Err(Error::invalid(format!(
            "{argument} is of no use: this program has rights that whoever started it may not have (it is \
             setuid or setgid, or has capabilities), so its environment is not to be trusted"
        )));
    }
    let fault = |what| Error::invalid(format!("the variable that {argument} names is {what}"));
    match environment::variable(name) {
        None => Err(fault("not set")),
        Some(value) if value.is_empty() => Err(fault("empty")),
        Some(value) => Ok(value),
    }
}

fn set_password_callback(
    rl: *mut RedLock,
    user: *const c_char,
    callback: RedLockPasswordCallback,
    user_data: UserData,
) -> RedLockStatus {
    // Also while `user_data` is destroyed that nobody took.
    let _uncancelled = Uncancelled::new();
    manager_call(rl, |handle| {
        let source = password_source(callback, user_data);
        handle.manager.set_password_source(text_or_null(user, "user")?, source)
    })
}

/// The C function and its argument as a source of passwords.
fn password_source(
    callback: RedLockPasswordCallback,
    user_data: UserData,
) -> Option<PasswordSource> {
    let function = callback?;
    Some(Arc::new(move |server: &str| {
        let server = super::message::c_string(server);
        let mut room = vec![0_u8; PASSWORD_ROOM];
        let place = room.as_mut_ptr().cast();
        // SAFETY: `function` is what the caller gave as a RedLockPasswordCallback, for this user_data,
        // `server` is a C string, and `place` has room for so many bytes; both outlive the call.
        let is_there = unsafe { function(server.as_ptr(), place, room.len(), user_data.pointer()) };
        let length = room.iter().position(|&byte| byte == 0);
        let password = length.filter(|_| is_there).map(|length| room[..length].to_vec());
        room.fill(0);
        // The compiler must not find that nobody reads the zeros.
        std::hint::black_box(&room);
        password.filter(|password| !password.is_empty())
    }))
}
