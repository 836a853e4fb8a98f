//! The state of a lease, with the strings that C programs read.

use std::ffi::{CString, c_char};
use std::sync::Arc;

use super::message::c_string;
use crate::manager::lease::Lease;
use crate::protocol::error::Error;

/// A lease as C sees it. The strings are stored where pointers to them stay valid.
#[derive(Default)]
pub(super) struct State {
    pub(super) lease: Lease,
    resource: Vec<u8>,
    /// The names of several resources, each with its NUL; empty if there is one resource.
    resources: Vec<Vec<u8>>,
    token: TokenText,
    pub(super) message: CString,
}

/// A token, or nothing, and its NUL. It is stored in place, because it changes with every call.
#[derive(Default)]
struct TokenText([[u8; 8]; 6]);

impl TokenText {
    fn set(&mut self, token: &str) {
        self.0 = Default::default();
        let text = self.0.as_flattened_mut();
        let length = token.len().min(text.len() - 1);
        text[..length].copy_from_slice(&token.as_bytes()[..length]);
    }

    fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

impl State {
    pub(super) fn token(&self) -> *const c_char {
        self.token.as_ptr()
    }

    /// Returns the resource, which ends with a NUL.
    pub(super) fn resource(&self) -> *const c_char {
        if self.resource.is_empty() { c"".as_ptr() } else { self.resource.as_ptr().cast() }
    }

    /// Returns the resource with this index, which ends with a NUL.
    pub(super) fn resource_at(&self, index: usize) -> *const c_char {
        match (self.resources.get(index), index) {
            (Some(resource), _) => resource.as_ptr().cast(),
            (None, 0) => self.resource(),
            (None, _) => c"".as_ptr(),
        }
    }

    /// Stores the lease after a call, and the message of the call.
    pub(super) fn keep(&mut self, lease: Lease, error: Option<&Error>) {
        self.lease = lease;
        self.refresh(error);
    }

    pub(super) fn refresh(&mut self, error: Option<&Error>) {
        // A misuse must not change the strings of a lock that is still held.
        if self.resource.strip_suffix(&[0]) != Some(self.lease.resource()) {
            self.resource = [self.lease.resource(), &[0]].concat();
        }
        self.refresh_resources();
        self.token.set(self.lease.token().unwrap_or_default());
        match error {
            Some(error) => self.message = c_string(&error.to_string()),
            None if self.message.as_bytes() == self.lease.absent().as_bytes() => {}
            None => self.message = c_string(self.lease.absent()),
        }
    }

    fn refresh_resources(&mut self) {
        let names = match self.lease.resources() {
            [] | [_] => &[],
            several => several,
        };
        let is_it = |(known, name): (&Vec<u8>, &Arc<[u8]>)| known.strip_suffix(&[0]) == Some(name);
        let are_known = self.resources.len() == names.len();
        if !are_known || !self.resources.iter().zip(names).all(is_it) {
            self.resources = names.iter().map(|name| [name, &[0][..]].concat()).collect();
        }
    }
}
