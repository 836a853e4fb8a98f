//! Calls that set log-ins and trust, with any arguments.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use crate::choices::Choices;
use crate::ffi::RedLock;
use crate::ffi::access::{
    RedLock_SetCredentials, RedLock_SetCredentialsFromEnv, RedLock_SetPasswordCallback,
    RedLock_SetTlsCa, RedLock_SetTlsCertificate, RedLock_SetTlsInsecureSkipVerify,
    RedLock_SetTlsServerName,
};
use crate::ffi::status::RedLockStatus::{self, REDLOCK_INVALID_ARGUMENT};
use crate::handles::pointer;
use crate::urls::SECRET;

/// Makes one of these calls. The manager is NULL, or alive.
pub(crate) fn set(rl: *mut RedLock, choices: &mut Choices<'_>) -> RedLockStatus {
    let kind = choices.below(7);
    let (first, second) = (string(choices), string(choices));
    let (one, other) = (pointer(first.as_ref()), pointer(second.as_ref()));
    let source = choices.below(3);
    // SAFETY: the manager is NULL or alive, and so are the strings. The callback writes no more than its
    // buffer holds.
    let status = unsafe {
        match kind {
            0 => RedLock_SetCredentials(rl, one, other),
            1 => RedLock_SetCredentialsFromEnv(rl, one, other),
            2 => match source {
                0 => RedLock_SetPasswordCallback(rl, one, None, ptr::null_mut(), None),
                it => RedLock_SetPasswordCallback(rl, one, Some(tell), user_data(it), None),
            },
            3 => RedLock_SetTlsCa(rl, one),
            4 => RedLock_SetTlsCertificate(rl, one, other),
            5 => RedLock_SetTlsServerName(rl, one),
            _ => RedLock_SetTlsInsecureSkipVerify(rl, source == 0),
        }
    };
    // There are no files.
    let names_file =
        (kind == 3 && first.is_some()) || (kind == 4 && (first.is_some() || second.is_some()));
    assert!(!names_file || status == REDLOCK_INVALID_ARGUMENT);
    status
}

/// None, a secret string, or any string.
fn string(choices: &mut Choices<'_>) -> Option<CString> {
    let bytes = match choices.below(4) {
        0 => return None,
        1 => SECRET.as_bytes(),
        2 => b"PATH",
        _ => choices.bytes(),
    };
    let text = bytes.split(|&it| it == 0).next().unwrap_or_default();
    Some(CString::new(text).expect("it ends before the first NUL"))
}

/// What the callback below must do.
fn user_data(kind: usize) -> *mut c_void {
    ptr::without_provenance_mut(kind)
}

/// Writes a password; or fills its whole buffer, which is not a valid password.
unsafe extern "C" fn tell(
    server: *const c_char,
    password: *mut c_char,
    size: usize,
    user_data: *mut c_void,
) -> bool {
    // SAFETY: the header promises a string.
    assert!(!unsafe { CStr::from_ptr(server) }.is_empty());
    let length = if user_data.addr() == 1 { SECRET.len() } else { size };
    // SAFETY: the buffer has `size` bytes, and no more than that are written.
    unsafe {
        password.write_bytes(b'x', length);
        if length < size {
            password.copy_from(SECRET.as_ptr().cast(), length);
        }
    }
    true
}
