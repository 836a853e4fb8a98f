//! The C functions for access to servers: credentials, and the certificates that the library trusts.

use std::ffi::{c_char, c_void};
use std::str;
use std::sync::Arc;

use super::arguments::{text, text_or_null};
use super::call::manager_call;
use super::callback::{RedLockDestroy, UserData};
use super::handle::RedLock;
use super::status::RedLockStatus;
use crate::protocol::argument::{Argument, Fault};
use crate::protocol::conn::login::PasswordSource;
use crate::protocol::error::Error;
use crate::system::cancellation::Uncancelled;
use crate::system::environment;

/// The room for the password that a callback writes, including the NUL. Some servers accept tokens of
/// identity providers as passwords, and such a token has a few thousand bytes.
const PASSWORD_ROOM: usize = 16 * 1024;

/// Provides the password for a server. See RedLock_SetPasswordCallback.
///
/// @param server    the server as messages name it, such as "10.0.0.7:6379". For a master that Sentinels
///                  watch: its name and the first Sentinel, "mymaster (Sentinel 10.0.0.5:26379)". Valid
///                  during the call.
/// @param password  the buffer for the password, to be written as a string that ends with a NUL. The library
///                  fills the buffer with zeros before the call and again after it.
/// @param size      the size of the buffer in bytes, including the NUL: 16384.
/// @param user_data the user_data that was given to RedLock_SetPasswordCallback.
/// @return true if the password was written. false if there is no password now: the server then counts as not
///         connected, and the library calls the callback again after one second at the earliest.
pub type RedLockPasswordCallback = Option<
    unsafe extern "C" fn(
        server: *const c_char,
        password: *mut c_char,
        size: usize,
        user_data: *mut c_void,
    ) -> bool,
>;

/// Sets the user and the password for servers whose URLs name none. A URL that names both, or only a
/// password, is not affected. A URL that names only a user gets the password. Existing connections stay as
/// they are. Nothing needs to be escaped here, unlike in a URL.
///
/// @param rl       the manager.
/// @param user     the name of an ACL user, or NULL for the default user. Must not be empty.
/// @param password the password, or NULL. NULL with a user: that user needs no password. NULL without a user:
///                 no log-in at all, which is the default. Must not be empty.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetCredentials(
    rl: *mut RedLock,
    user: *const c_char,
    password: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let user = text_or_null(user, "user")?;
        handle.manager.settings().set_credentials(user, text_or_null(password, "password")?)
    })
}

/// Sets the user and the password from two environment variables. This is RedLock_SetCredentials with the
/// values of these variables, so that neither value is in the program or on a command line. The variables are
/// read now, and not again. In a program that has more rights than its user (setuid, setgid, capabilities)
/// neither is read. Otherwise the user who starts the program could choose its identity on the servers.
///
/// @param rl                the manager.
/// @param user_variable     the name of the variable that holds the user, or NULL for the default user.
/// @param password_variable the name of the variable that holds the password.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT if a variable is not set, is empty, or must not be read: the
///         message says which of the two variables it is, and never contains the name of a variable or its
///         value. REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetCredentialsFromEnv(
    rl: *mut RedLock,
    user_variable: *const c_char,
    password_variable: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let of_variable = |name| variable(name, Argument::UserVariable);
        let user = text_or_null(user_variable, "user_variable")?.map(of_variable).transpose()?;
        let password = text(password_variable, "password_variable")?;
        let password = variable(password, Argument::PasswordVariable)?;
        handle.manager.settings().set_credentials(user.as_deref(), Some(&password))
    })
}

/// Sets a function that provides the password for each server whose URL names none. The library calls it when
/// it connects to a server for the first time, and again when the server did not accept the last answer. So a
/// password may be changed while the program runs. The function is called on a thread that is in a call to
/// this library, or on the thread of RedLock_SetBackgroundThread. No mutex is held, and two threads never
/// call it at once for one server. RedLock_Lock and similar calls, and RedLock_Connect, ask for passwords
/// before they begin. A call on a held lock asks only if too few servers are connected. These calls wait for
/// the function, so it should be quick.
///
/// The function may call this library, with two limits. The lease of the call that it runs in cannot be used,
/// because it is in use. A call on this manager waits for the answer in vain, up to the timeout for
/// connecting. The function may fork: then the call ends in the child with REDLOCK_FORKED. It must not unwind
/// (longjmp, throw) through the library.
///
/// @param rl        the manager.
/// @param user      as for RedLock_SetCredentials.
/// @param callback  the function. NULL: ask nobody, and do not log in.
/// @param user_data passed to the function unchanged; may be NULL. It must stay valid for as long as the
///                  user_data of RedLock_SetLogger.
/// @param destroy   as for RedLock_SetLogger: called once, with user_data, when the library no longer needs
///                  user_data. RedLock_SetCredentials also replaces the callback. If callback is NULL, or
///                  this function fails, destroy is called before this function returns. NULL: nobody needs
///                  to be told.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetPasswordCallback(
    rl: *mut RedLock,
    user: *const c_char,
    callback: RedLockPasswordCallback,
    user_data: *mut c_void,
    destroy: RedLockDestroy,
) -> RedLockStatus {
    // Also covers the destruction of a `user_data` that the manager did not take.
    let _uncancelled = Uncancelled::new();
    let user_data = UserData::new(user_data, destroy);
    manager_call(rl, |handle| {
        let source = password_source(callback, user_data);
        handle.manager.settings().set_password_source(text_or_null(user, "user")?, source)
    })
}

/// Sets which certificates are trusted to identify rediss:// servers. Existing connections stay as they are.
///
/// @param rl      the manager.
/// @param ca_file the path of a PEM file with certificates: only these are trusted. The file is read now; if
///                it is a FIFO, the call waits for it. NULL, the default: the certificates that the system
///                trusts. They are read by the first lock call, from the place where the OpenSSL of the
///                system looks for them, or from SSL_CERT_FILE and SSL_CERT_DIR of the environment. In a
///                program that has more rights than its user (setuid, setgid, capabilities) both variables
///                are ignored, as OpenSSL does.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT if the file cannot be used, or if this build has no TLS. The
///         message says why, but never contains the name of the file: that name might be the certificate or a
///         key itself. REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTlsCa(
    rl: *mut RedLock,
    ca_file: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        handle.manager.settings().tls().set_ca(text_or_null(ca_file, "ca_file")?)
    })
}

/// Sets the client certificate for rediss:// servers that ask for one. Both files are read now. Set them
/// again when they have changed. Existing connections stay as they are.
///
/// @param rl               the manager.
/// @param certificate_file the path of a PEM file with the client certificate, followed by the certificates
///                         that lead up to one that the servers trust. NULL, the default, for none.
/// @param key_file         the path of a PEM file with the key of that certificate, not encrypted. NULL if,
///                         and only if, certificate_file is NULL.
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
                let fault = Fault::MissingBeside(Argument::CertificateFile);
                return Err(Error::of_argument(Argument::KeyFile, fault));
            }
            (None, Some(_)) => {
                let fault = Fault::MissingBeside(Argument::KeyFile);
                return Err(Error::of_argument(Argument::CertificateFile, fault));
            }
        };
        handle.manager.settings().tls().set_certificate(files)
    })
}

/// Sets the name that the certificates of rediss:// servers must be for. Use it where this name is not the
/// host in the URLs: with a tunnel, for example, or with one certificate for all servers. Existing
/// connections stay as they are.
///
/// @param rl   the manager.
/// @param name a host name or an address. NULL, the default: for each server its own host.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT if no host can have this name, or if this build has no TLS.
///         REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTlsServerName(
    rl: *mut RedLock,
    name: *const c_char,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let name = text_or_null(name, "name")?.map(str::from_utf8).transpose();
        let name = name.map_err(|_| Error::argument(Argument::ServerName, "is not UTF-8"))?;
        handle.manager.settings().tls().set_server_name(name)
    })
}

/// Sets whether rediss:// servers are accepted without verification. Then each server is believed to be the
/// server that it claims to be, without any proof. A certificate that cannot be read, or is not of version 3,
/// is still refused. Anybody on the network path to the servers can then read everything, including passwords
/// and tokens, and can answer in place of the servers. Use this only for experiments. If the certificates are
/// your own, name them with RedLock_SetTlsCa.
///
/// @param rl   the manager.
/// @param skip true: nothing is verified. false, the default: everything is verified.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT if this build has no TLS. REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTlsInsecureSkipVerify(
    rl: *mut RedLock,
    skip: bool,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.settings().tls().set_skip_verify(skip))
}

/// Returns the value of an environment variable. The error message does not quote the name of the variable,
/// because the caller may have passed the value instead of the name.
fn variable(name: &[u8], argument: Argument) -> Result<Vec<u8>, Error> {
    if environment::is_foreign() {
        return Err(Error::argument(
            argument,
            "cannot be used: a program with extra rights (setuid, setgid or capabilities) must not trust its \
             environment",
        ));
    }
    let fault = |what: &str| Error::argument(argument, what);
    match environment::variable(name) {
        None => Err(fault("names an environment variable that is not set")),
        Some(value) if value.is_empty() => {
            Err(fault("names an environment variable that is empty"))
        }
        Some(value) => Ok(value),
    }
}

/// Turns the C function and its argument into a source of passwords.
fn password_source(
    callback: RedLockPasswordCallback,
    user_data: UserData,
) -> Option<PasswordSource> {
    let function = callback?;
    Some(Arc::new(move |server: &str| {
        let server = super::message::c_string(server);
        let mut room = vec![0_u8; PASSWORD_ROOM];
        let place = room.as_mut_ptr().cast();
        // SAFETY: the caller gave `function` as a RedLockPasswordCallback for this user_data. `server` is a C
        // string, and `place` has room for `room.len()` bytes. Both outlive the call.
        let is_there = unsafe { function(server.as_ptr(), place, room.len(), user_data.pointer()) };
        let length = room.iter().position(|&byte| byte == 0);
        let password = length.filter(|_| is_there).map(|length| room[..length].to_vec());
        room.fill(0);
        // Keeps the compiler from removing the zeros, which nothing reads.
        std::hint::black_box(&room);
        password.filter(|password| !password.is_empty())
    }))
}
