//! Shared parts of the commands about fencing tokens: the numbers of all resources, in one hash on each server.
//!
//! - The fields `0` to `4095` are the numbers that were drawn last. The name of a resource decides which field is
//!   its own ([`field`]), and resources may share a field. That never changes: all clients must agree.
//! - `base` is a number below which nothing is drawn, whatever a field says.
//! - `life` names the memory of the server to which these numbers belong, as its note does (`guard.rs`). A server
//!   that lost its memory has a note with another name, or has no hash. Then it draws no number until another
//!   server's numbers have told how far they had got.
//! - `clock` marks numbers that were restored by the clock alone, because too few servers could be read.
//! - `seen` is when it was first seen that the numbers are lost, in milliseconds of the server's clock.
//!
//! A server draws the number that the client proposes, which is the client's clock in microseconds. It draws
//! another number if the proposed one is far from the server's own clock, or if an equal or greater number
//! was drawn before. So usually all servers draw the same number. docs/internals/kinds.md, "Fencing tokens",
//! gives the reasons for these bounds.

use super::answer::Answer;
use super::definition::Subject;
use super::encoder::Encoder;
use super::memory_id::MemoryId;
use super::script::Script;
use crate::protocol::failure::Failure;

/// The name of the hash. No lock may have this name.
pub(crate) const KEY: &str = "redlock:fence";

/// The number of fields.
const FIELDS: u64 = 4_096;

/// How far a number may be from the clock of the server that draws it, in microseconds.
pub(super) const SPREAD_US: i64 = 1_000_000;

/// The last argument of a script, until it is known which server gets the request: no memory is known.
pub(super) const NO_MEMORY: &str = "----------------";

/// The bytes behind the last argument of a request.
const END: usize = b"\r\n".len();

/// The field of a resource: the FNV-1a hash of its name, with 64 bits.
pub(crate) fn field(resource: &[u8]) -> u64 {
    let hash = resource.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    hash % FIELDS
}

/// Names the memory of the server that gets the request at the end of `outbox`. All servers share the other bytes.
pub(crate) fn name_memory(memory: MemoryId, outbox: &mut [u8]) {
    let end = outbox.len() - END;
    outbox[end - NO_MEMORY.len()..end].copy_from_slice(memory.as_str().as_bytes());
}

/// Adds a script about the numbers of all resources: their keys and the hash, the token, these arguments, the fields,
/// and the memory.
pub(super) fn put_fenced(
    subject: &Subject,
    script: Script,
    arguments: &[i64],
    encoder: &mut Encoder,
) {
    let names = subject.names();
    encoder.put_script(script, |command| {
        command.arg(names.len() + 1);
        for name in names {
            command.key(&**name);
        }
        command.key(KEY).arg(subject.token.as_bytes());
        for &argument in arguments {
            command.arg(argument);
        }
        for name in names {
            command.arg(field(name));
        }
        command.arg(NO_MEMORY)
    });
}

/// The meaning of a reply of `draw.lua`. None if it never returns that.
pub(super) fn drawn(said: [i64; 2]) -> Option<Answer> {
    match said {
        [-5, number] if number > 0 => Some(Answer::Granted { number }),
        [-3, number] if number > 0 => Some(Answer::GrantedByClock { number }),
        [-2, ago_ms] if ago_ms >= 0 => Some(Answer::Unfenced { ago_ms }),
        [-1, 0] => Some(Answer::Failed(Failure::NoFences)),
        [-4, 0] => Some(Answer::Failed(Failure::ClockBeyond)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All clients must agree about the fields, for ever.
    #[test]
    fn the_field_of_a_resource_never_changes() {
        // The hashes of these names in the specification of FNV: cbf29ce484222325, af63dc4c8601ec8c,
        // 85944171f73967e8.
        for (resource, number) in [("", 0x325), ("a", 0xC8C), ("foobar", 0x7E8)] {
            assert_eq!(field(resource.as_bytes()), number, "{resource}");
        }
    }

    #[test]
    fn each_server_gets_its_own_memory_id() {
        let mut outbox = format!("x$16\r\n{NO_MEMORY}\r\n").into_bytes();
        name_memory(MemoryId::from_random(0xFF), &mut outbox);
        assert_eq!(outbox, b"x$16\r\n00000000000000ff\r\n");
    }
}
