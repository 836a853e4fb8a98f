//! A request as it is sent. A script is sent as its text, or as the hash of the text to a server that knows
//! it.

use std::fmt;
use std::sync::OnceLock;

use super::script::Script;

/// A request as it is sent. If it begins with a script, it has room for the hash of the script.
#[derive(Clone)]
pub(crate) struct Encoded {
    form: Form,
    script: Option<ScriptAt>,
    bytes: Box<[u8]>,
}

/// Where a request has its script.
#[derive(Clone, Copy)]
pub(super) struct ScriptAt {
    pub(super) script: Script,
    /// Where the line with the number of its words ends, and where the hash stands.
    pub(super) count_end: usize,
    pub(super) hash_at: usize,
}

/// The maximum number of forms of a command.
pub(super) const FORMS: usize = 4;

/// A request in all forms in which it was sent. Nearly always that is one, so there is room for one.
#[derive(Default)]
pub(super) struct AllEncoded {
    first: OnceLock<Encoded>,
    others: OnceLock<Box<[OnceLock<Encoded>; FORMS]>>,
}

impl AllEncoded {
    /// The request in the form of this number.
    pub(super) fn get_or_encode(
        &self,
        number: usize,
        mut encode: impl FnMut() -> Encoded,
    ) -> &Encoded {
        let first = self.first.get_or_init(&mut encode);
        if usize::from(first.form.number) == number {
            return first;
        }
        self.others.get_or_init(Box::default)[number].get_or_init(encode)
    }
}

/// One of the forms of a request, and what it means for the answer. Aligned so that it is copied in one piece.
#[repr(align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Form {
    /// All servers know form 0.
    pub(crate) number: u8,
    /// Whether only some servers know it, and all know another one.
    pub(crate) is_special: bool,
    /// Whether it wakes waiters.
    pub(crate) wakes: bool,
    /// Whether the answer tells when the key ends.
    pub(crate) tells_end: bool,
    /// The number of replies.
    pub(crate) replies: u8,
    /// The first reply when it has done what was asked, if that can be told by its bytes.
    pub(crate) usual: Option<FirstReply>,
}

/// A reply that is told by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstReply {
    /// Of a command that has done what was asked.
    Ok,
    /// Of a script that has done what was asked.
    One,
}

impl FirstReply {
    /// What comes behind it, if these bytes begin with it.
    #[inline]
    pub(crate) fn strip_from(self, bytes: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Ok => bytes.strip_prefix(b"+OK\r\n"),
            Self::One => bytes.strip_prefix(b":1\r\n"),
        }
    }
}

impl Encoded {
    /// From the commands in `bytes`.
    pub(super) fn new(form: Form, script: Option<ScriptAt>, bytes: &[u8]) -> Self {
        Self { form, script, bytes: bytes.into() }
    }

    /// The form in which it is sent.
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// The script with which it begins, if any.
    pub(crate) fn script(&self) -> Option<Script> {
        self.script.map(|it| it.script)
    }

    /// Appends it to the outbox, with the script's text, or with this hash in its place.
    pub(crate) fn put(&self, hash: Option<&Hash>, outbox: &mut Vec<u8>) {
        match (self.script, hash) {
            (None, _) => outbox.extend_from_slice(&self.bytes),
            (Some(ScriptAt { hash_at, .. }), Some(hash)) => {
                let start = outbox.len() + hash_at;
                outbox.extend_from_slice(&self.bytes);
                outbox[start..start + hash.0.len()].copy_from_slice(&hash.0);
            }
            (Some(ScriptAt { script, count_end, hash_at }), None) => {
                outbox.extend_from_slice(&self.bytes[..count_end]);
                let text = format!("$4\r\nEVAL\r\n${}\r\n{script}", script.len());
                outbox.extend_from_slice(text.as_bytes());
                outbox.extend_from_slice(&self.bytes[hash_at + Hash::NONE.len()..]);
            }
        }
    }

    /// All its bytes, with the text of its script.
    #[cfg(test)]
    pub(crate) fn whole(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(None, &mut bytes);
        bytes
    }
}

/// Identifies a script that the server was sent before: SHA-1, in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; 40]);

impl Hash {
    /// What stands in its place before it is known.
    pub(super) const NONE: [u8; 40] = [b'0'; 40];

    /// The hash of this script.
    pub(crate) fn of(script: Script) -> Option<Self> {
        redis::Script::new(script).get_hash().as_bytes().try_into().ok().map(Self)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({})", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::encoder::Encoder;
    use super::*;

    static SCRIPT: &str = "return 1";

    #[test]
    fn a_script_is_sent_as_text_or_hash() {
        let mut encoder = Encoder::default();
        encoder.put_script(&SCRIPT, |command| command.arg(1).arg("").arg("$0"));
        encoder.put(|command| command.arg("PING"));
        let encoded = encoder.take();
        let put = |hash: Option<&Hash>| {
            let mut outbox = b"before ".to_vec();
            encoded.put(hash, &mut outbox);
            String::from_utf8(outbox).unwrap()
        };
        let rest = "$1\r\n1\r\n$0\r\n\r\n$2\r\n$0\r\n*1\r\n$4\r\nPING\r\n";
        assert_eq!(put(None), format!("before *5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n{rest}"));
        // The reply to `SCRIPT LOAD "return 1"`.
        let hash = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
        let by_hash = format!("before *5\r\n$7\r\nEVALSHA\r\n$40\r\n{hash}\r\n{rest}");
        assert_eq!(put(Hash::of(&SCRIPT).as_ref()), by_hash);
        assert!(encoded.script().is_some_and(|script| std::ptr::eq(script, &SCRIPT)));
        encoder.put(|command| command.arg("PING"));
        let other = encoder.take();
        assert!(other.script().is_none());
        assert_eq!(other.whole(), b"*1\r\n$4\r\nPING\r\n");
    }
}
