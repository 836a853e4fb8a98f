//! Why a Sentinel does not say where the master is: the words that follow its name.

use std::io;

use crate::protocol::command::arbiter::ArbiterQuery;
use crate::protocol::conn::why::error_words;
use crate::protocol::failure::Failure;
use crate::transport::wire::Wire;

/// What the Sentinel said, in words that follow its name.
pub(super) fn of_failure(failure: &Failure) -> String {
    format!(": {failure}")
}

/// How the conversation ended early, and the likely cause.
pub(super) fn of_breaking(wire: &Wire, query: &ArbiterQuery, error: &io::Error) -> String {
    let why = error_words(error);
    let perhaps = match wire {
        Wire::Plain(_) if !query.has_begun() => {
            let [_, with_tls] = query.kind().schemes();
            format!(": it may expect TLS (use {with_tls})")
        }
        _ => of_silence(wire, query),
    };
    format!(": {why}{perhaps}")
}

/// The likely cause if nothing was received in the TLS handshake.
pub(super) fn of_silence(wire: &Wire, query: &ArbiterQuery) -> String {
    let [without_tls, _] = query.kind().schemes();
    match wire.is_silent() {
        true => format!(": it may not support TLS (use {without_tls})"),
        false => String::new(),
    }
}
