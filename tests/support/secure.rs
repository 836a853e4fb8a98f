//! A manager's settings for TLS and log-ins.

use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::{ptr, slice};

use redlock::ffi::access::{
    RedLock_SetCredentials, RedLock_SetCredentialsFromEnv, RedLock_SetPasswordCallback,
    RedLock_SetTlsCa, RedLock_SetTlsCertificate, RedLock_SetTlsInsecureSkipVerify,
    RedLock_SetTlsServerName,
};
use redlock::ffi::status::RedLockStatus;

use super::client::Manager;
use super::tls::Identity;

impl Manager {
    pub(crate) fn set_tls_ca(&self, file: Option<&str>) -> RedLockStatus {
        let file = Text::new(file);
        // SAFETY: the manager and the string are alive.
        unsafe { RedLock_SetTlsCa(self.raw(), file.pointer()) }
    }

    pub(crate) fn set_tls_certificate(
        &self,
        certificate: Option<&str>,
        key: Option<&str>,
    ) -> RedLockStatus {
        let (certificate, key) = (Text::new(certificate), Text::new(key));
        // SAFETY: the manager and the strings are alive.
        unsafe { RedLock_SetTlsCertificate(self.raw(), certificate.pointer(), key.pointer()) }
    }

    #[track_caller]
    pub(crate) fn shows(&self, identity: &Identity) {
        let status = self.set_tls_certificate(Some(&identity.certificate), Some(&identity.key));
        assert_eq!(status, RedLockStatus::REDLOCK_OK, "{}", self.message());
    }

    pub(crate) fn set_tls_server_name(&self, name: Option<&str>) -> RedLockStatus {
        let name = Text::new(name);
        // SAFETY: the manager and the string are alive.
        unsafe { RedLock_SetTlsServerName(self.raw(), name.pointer()) }
    }

    pub(crate) fn set_tls_insecure_skip_verify(&self, skip: bool) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetTlsInsecureSkipVerify(self.raw(), skip) }
    }

    pub(crate) fn set_credentials(
        &self,
        user: Option<&str>,
        password: Option<&str>,
    ) -> RedLockStatus {
        let (user, password) = (Text::new(user), Text::new(password));
        // SAFETY: the manager and the strings are alive.
        unsafe { RedLock_SetCredentials(self.raw(), user.pointer(), password.pointer()) }
    }

    /// Takes the names of environment variables.
    pub(crate) fn set_credentials_from_env(
        &self,
        user: Option<&str>,
        password: Option<&str>,
    ) -> RedLockStatus {
        let (user, password) = (Text::new(user), Text::new(password));
        // SAFETY: the manager and the strings are alive.
        unsafe { RedLock_SetCredentialsFromEnv(self.raw(), user.pointer(), password.pointer()) }
    }

    /// Sets a password callback, for as long as the returned value is kept. The callback gets the server,
    /// and the whole buffer for the password.
    #[track_caller]
    pub(crate) fn asks<'a>(
        &'a self,
        user: Option<&str>,
        answer: impl Fn(&str, &mut [u8]) -> bool + Sync + 'a,
    ) -> Asked<'a> {
        let answer: Box<Answer<'a>> = Box::new(Box::new(answer));
        let (user, user_data) = (Text::new(user), ptr::from_ref(&*answer).cast_mut().cast());
        // SAFETY: the manager and the string are alive, and the box lives until another callback is set.
        let status = unsafe {
            RedLock_SetPasswordCallback(self.raw(), user.pointer(), Some(ask), user_data, None)
        };
        assert_eq!(status, RedLockStatus::REDLOCK_OK, "{}", self.message());
        Asked { manager: self, _answer: answer, _lifetime: PhantomData }
    }
}

type Answer<'a> = Box<dyn Fn(&str, &mut [u8]) -> bool + Sync + 'a>;

/// As long as it is kept, a manager asks for passwords.
pub(crate) struct Asked<'a> {
    manager: &'a Manager,
    _answer: Box<Answer<'a>>,
    _lifetime: PhantomData<&'a ()>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let none = ptr::null_mut();
        // SAFETY: the manager is alive, because it is borrowed.
        unsafe { RedLock_SetPasswordCallback(self.manager.raw(), ptr::null(), None, none, None) };
    }
}

/// Writes a password into the buffer, as a C program would: with a NUL behind it.
pub(crate) fn answer_with(password: &str, room: &mut [u8]) -> bool {
    room[..password.len()].copy_from_slice(password.as_bytes());
    room[password.len()] = 0;
    true
}

unsafe extern "C" fn ask(
    server: *const c_char,
    password: *mut c_char,
    size: usize,
    user_data: *mut c_void,
) -> bool {
    // SAFETY: `user_data` was set by `asks`, and lives as long as this callback is set.
    let answer = unsafe { &*user_data.cast::<Answer<'_>>() };
    // SAFETY: the header promises a C string.
    let server = unsafe { CStr::from_ptr(server) }.to_string_lossy();
    // SAFETY: the header promises a buffer of this size.
    let room = unsafe { slice::from_raw_parts_mut(password.cast::<u8>(), size) };
    answer(&server, room)
}

/// A string, or NULL.
struct Text(Option<CString>);

impl Text {
    fn new(text: Option<&str>) -> Self {
        Self(text.map(|it| CString::new(it).expect("no NUL in it")))
    }

    fn pointer(&self) -> *const c_char {
        self.0.as_ref().map_or(ptr::null(), |it| it.as_ptr())
    }
}
