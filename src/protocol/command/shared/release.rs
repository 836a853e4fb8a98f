//! Leaves the readers of a resource, and wakes the waiters if that was the last reader. Always a script.

use super::{LONGEST_MS, intent, readers};
use crate::protocol::command::capabilities::Capabilities;
use crate::protocol::command::definition::{Definition, Subject};
use crate::protocol::command::encoder::Encoder;
use crate::protocol::command::script::script;
use crate::protocol::command::waking::line;
use crate::protocol::command::{release, release_and_wake};

pub(in crate::protocol::command) static DEFINITION: Definition =
    Definition::script(2, encode, release::DEFINITION.decode);

/// The form that wakes. The other form is the same as that of [`DEFINITION`].
const WAKES: usize = 1;

/// The same, and wakes waiters.
pub(in crate::protocol::command) static AND_WAKE: Definition =
    Definition { form, ..Definition::script(4, encode_waking, release_and_wake::decode) };

pub(crate) static SCRIPT: &str = script!("release.lua"; "return ours\n");

pub(crate) static WAKING_SCRIPT: &str = script!("../wake.lua", "release.lua", "wake.lua");

fn form(capabilities: Capabilities) -> usize {
    if capabilities.wakes { WAKES } else { 0 }
}

fn encode_waking(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    if form(capabilities) != WAKES {
        return encode(subject, capabilities, encoder);
    }
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put_script(&WAKING_SCRIPT, |command| {
        let command = command.arg(4).key(key).key(readers(key));
        command.key(line(key)).key(intent(key)).arg(token).arg(LONGEST_MS)
    });
}

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put_script(&SCRIPT, |command| {
        let command = command.arg(2).key(key).key(readers(key));
        command.arg(token).arg(LONGEST_MS)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that are named.
    fn keys(capabilities: Capabilities) -> Vec<String> {
        let mut encoder = Encoder::default();
        encode_waking(&Subject::sample(), capabilities, &mut encoder);
        let text = String::from_utf8_lossy(&encoder.take().whole()).into_owned();
        let words = text.split("\r\n").filter(|it| it.starts_with('r') && it.len() < 4);
        words.map(str::to_owned).collect()
    }

    #[test]
    fn only_a_waking_release_names_the_line() {
        assert_eq!(keys(Capabilities::WAKING), ["r", "r:r", "r:w", "r:i"]);
        assert_eq!(keys(Capabilities::PLAIN), ["r", "r:r"]);
        let after = Capabilities::WAKING.after_refusal(false, form);
        assert_eq!(keys(after), ["r", "r:r"]);
    }
}
