//! Replaces TLS if the library is built without it.

use std::io;

use crate::protocol::error::Error;
use crate::protocol::servers::address::Address;
use crate::system::socket::Socket;

/// Whether this build has TLS.
/// Settings that cannot be made.
#[derive(Debug, Default)]
pub struct Tls;

/// There are no TLS sessions.
pub(super) enum Session {}

fn refusal<T>() -> Result<T, Error> {
    Err(Error::invalid("this build has no TLS support"))
}

impl Tls {
    pub fn set_ca(&self, _file: Option<&[u8]>) -> Result<(), Error> {
        refusal()
    }

    pub fn set_certificate(&self, _files: Option<(&[u8], &[u8])>) -> Result<(), Error> {
        refusal()
    }

    pub fn set_server_name(&self, _name: Option<&str>) -> Result<(), Error> {
        refusal()
    }

    pub fn set_skip_verify(&self, _skips: bool) -> Result<(), Error> {
        refusal()
    }

    pub fn prepare(&self) {}

    pub(super) fn begin(&self, _place: &Address, _socket: Socket) -> Result<Session, String> {
        Err("this build has no TLS support".to_owned())
    }
}

impl Session {
    pub(super) fn send(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn receive(&mut self, _room: &mut [u8]) -> io::Result<Option<usize>> {
        match *self {}
    }

    pub(super) fn has_unsent(&self) -> bool {
        match *self {}
    }

    pub(super) fn is_shaking_hands(&self) -> bool {
        match *self {}
    }

    pub(super) fn is_silent(&self) -> bool {
        match *self {}
    }

    pub(super) fn socket(&self) -> &Socket {
        match *self {}
    }

    pub(super) fn forget(self) {
        match self {}
    }
}
