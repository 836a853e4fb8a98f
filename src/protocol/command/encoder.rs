//! Encodes commands as servers read them.
//!
//! The redis crate would do the same. But its commands are made for any use: a lock and its release took 4,700
//! instructions to encode with them, and take 1,800 here. Words that are the same in every acquire are laid out beforehand.

use std::mem;

use super::script::Script;
use super::wire_form::{Encoded, Form, Hash, ScriptAt};
use crate::protocol::token::Token;

/// The most memory that an encoder keeps for later.
const KEPT_MAX: usize = 8 * 1024;

/// Encodes requests, with buffers that are kept.
#[derive(Default)]
pub(crate) struct Encoder {
    command: Command,
    bytes: Vec<u8>,
    script: Option<ScriptAt>,
    /// The last request for a server on which keys have a prefix.
    kept: Option<Encoded>,
}

/// The words of a command.
#[derive(Default)]
pub(super) struct Command {
    count: usize,
    bytes: Vec<u8>,
    /// What each key has before it.
    prefix: Box<[u8]>,
}

/// A word of a command.
pub(super) trait Argument {
    fn put(self, command: &mut Command);
}

/// The name of a key, without the prefix that it has on the server.
pub(super) trait Key {
    /// Two parts of the name. None if there is no such key.
    fn parts(&self) -> Option<[&[u8]; 2]>;
}

impl Encoder {
    /// For a server on which each key has this before it.
    pub(crate) fn with_prefix(prefix: &[u8]) -> Self {
        Self { command: Command::with_prefix(prefix), ..Self::default() }
    }

    pub(super) fn has_prefix(&self) -> bool {
        !self.command.prefix.is_empty()
    }

    /// Keeps a request for as long as it takes to send it.
    pub(super) fn keep(&mut self, encoded: Encoded) -> &Encoded {
        self.kept.insert(encoded)
    }

    /// Adds a command.
    pub(super) fn put(&mut self, fill: impl FnOnce(&mut Command) -> &mut Command) {
        fill(&mut self.command);
        self.command.take(&mut self.bytes);
    }

    /// Adds a script, which must be the first command of its request. `fill` adds the number of its keys, the
    /// keys, and its arguments. The script itself is inserted when the request is sent ([`Encoded::put`]): nearly always
    /// as a hash, for which there is room.
    pub(super) fn put_script(
        &mut self,
        script: Script,
        fill: impl FnOnce(&mut Command) -> &mut Command,
    ) {
        debug_assert!(self.bytes.is_empty() && self.script.is_none());
        fill(&mut self.command);
        put_line(b'*', self.command.count + 2, &mut self.bytes);
        let count_end = self.bytes.len();
        self.bytes.extend_from_slice(b"$7\r\nEVALSHA\r\n$40\r\n");
        let hash_at = self.bytes.len();
        self.bytes.extend_from_slice(&Hash::NONE);
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes.append(&mut self.command.bytes);
        self.command.count = 0;
        self.script = Some(ScriptAt { script, count_end, hash_at });
    }

    /// Returns what was added since the last call, as a request in this form.
    pub(super) fn take_as(&mut self, form: Form) -> Encoded {
        let encoded = Encoded::new(form, self.script.take(), &self.bytes);
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_MAX || self.command.bytes.capacity() > KEPT_MAX {
            *self = Self::with_prefix(&self.command.prefix);
        }
        encoded
    }
}

impl Command {
    pub(super) fn with_prefix(prefix: &[u8]) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// Adds a word.
    pub(super) fn arg(&mut self, argument: impl Argument) -> &mut Self {
        argument.put(self);
        self
    }

    /// Adds so many words that are the same in every request, as servers read them.
    pub(super) fn put_fixed(&mut self, count: usize, words: &[u8]) -> &mut Self {
        self.count += count;
        self.bytes.extend_from_slice(words);
        self
    }

    /// Adds the name of a key.
    pub(super) fn key(&mut self, key: impl Key) -> &mut Self {
        if let Some([first, second]) = key.parts() {
            let prefix = mem::take(&mut self.prefix);
            self.put_word([&prefix, first, second]);
            self.prefix = prefix;
        }
        self
    }

    /// Adds a word that consists of these parts.
    pub(super) fn put_word<const PARTS: usize>(&mut self, parts: [&[u8]; PARTS]) {
        self.count += 1;
        put_line(b'$', parts.iter().map(|it| it.len()).sum(), &mut self.bytes);
        for part in parts.into_iter().filter(|it| !it.is_empty()) {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Appends the whole command, and begins the next one.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>) {
        put_line(b'*', self.count, bytes);
        bytes.append(&mut self.bytes);
        self.count = 0;
    }
}

/// Appends a line that announces words or bytes.
fn put_line(kind: u8, count: usize, bytes: &mut Vec<u8>) {
    let digit = |number: usize| b'0' + (number % 10) as u8;
    match count {
        // Nearly all are so short.
        0..=9 => bytes.extend_from_slice(&[kind, digit(count), b'\r', b'\n']),
        10..=99 => {
            bytes.extend_from_slice(&[kind, digit(count / 10), digit(count), b'\r', b'\n']);
        }
        _ => {
            bytes.push(kind);
            with_digits(count as u64, |digits| bytes.extend_from_slice(digits));
            bytes.extend_from_slice(b"\r\n");
        }
    }
}

/// Passes on the decimal digits of a number.
fn with_digits<T>(mut number: u64, work: impl FnOnce(&[u8]) -> T) -> T {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return work(&digits[first..]);
        }
    }
}

impl Key for &[u8] {
    fn parts(&self) -> Option<[&[u8]; 2]> {
        Some([self, b""])
    }
}

impl Key for &str {
    fn parts(&self) -> Option<[&[u8]; 2]> {
        Some([self.as_bytes(), b""])
    }
}

impl Key for Vec<u8> {
    fn parts(&self) -> Option<[&[u8]; 2]> {
        Some([self, b""])
    }
}

impl<T: Key> Key for Option<T> {
    fn parts(&self) -> Option<[&[u8]; 2]> {
        self.as_ref()?.parts()
    }
}

impl Argument for i64 {
    fn put(self, command: &mut Command) {
        let sign: &[u8] = if self < 0 { b"-" } else { b"" };
        with_digits(self.unsigned_abs(), |digits| command.put_word([sign, digits]));
    }
}

impl Argument for i32 {
    fn put(self, command: &mut Command) {
        i64::from(self).put(command);
    }
}

impl Argument for u16 {
    fn put(self, command: &mut Command) {
        i64::from(self).put(command);
    }
}

impl Argument for u64 {
    fn put(self, command: &mut Command) {
        with_digits(self, |digits| command.put_word([digits]));
    }
}

impl Argument for usize {
    fn put(self, command: &mut Command) {
        (self as u64).put(command);
    }
}

impl Argument for &[u8] {
    fn put(self, command: &mut Command) {
        command.put_word([self]);
    }
}

impl<const N: usize> Argument for &[u8; N] {
    fn put(self, command: &mut Command) {
        command.put_word([self]);
    }
}

impl Argument for &Token {
    fn put(self, command: &mut Command) {
        command.put_fixed(1, b"$40\r\n");
        command.bytes.extend_from_slice(self.as_bytes());
        command.bytes.extend_from_slice(b"\r\n");
    }
}

impl Argument for Vec<u8> {
    fn put(self, command: &mut Command) {
        command.put_word([&*self]);
    }
}

impl Argument for &str {
    fn put(self, command: &mut Command) {
        command.put_word([self.as_bytes()]);
    }
}

/// No word at all, if it is `None`.
impl<T: Argument> Argument for Option<T> {
    fn put(self, command: &mut Command) {
        self.into_iter().for_each(|it| it.put(command));
    }
}

#[cfg(test)]
impl Encoder {
    /// The same as a request of which nothing else matters.
    pub(super) fn take(&mut self) -> Encoded {
        self.take_as(Form::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_encoded_as_by_the_redis_crate() {
        let binary = [0, b'\r', b'\n', 0xFF];
        let mut command = Command::default();
        command.arg("SET").arg(&binary).arg(&binary[1..]).arg(b"".to_vec()).arg(i64::MIN);
        command.arg(i64::MAX).arg(0_usize).arg(7_u16).arg(-10_i32).arg("ü").arg(None::<&str>);
        command.arg(Some(1_000_i64));
        let mut expected = redis::cmd("SET");
        expected.arg(&binary).arg(&binary[1..]).arg(b"").arg(i64::MIN);
        expected.arg(i64::MAX).arg(0).arg(7).arg(-10).arg("ü").arg(1_000);
        let mut bytes = b"before".to_vec();
        command.take(&mut bytes);
        assert_eq!(bytes, [b"before".to_vec(), expected.get_packed_command()].concat());
        let long = "x".repeat(1_000);
        for count in [1, 9, 10, 100] {
            bytes.clear();
            expected.clear();
            for _ in 0..count {
                command.arg(&*long);
                expected.arg(&long);
            }
            command.take(&mut bytes);
            assert_eq!(bytes, expected.get_packed_command());
        }
        command.put_word([&b"r"[..], b":w"]);
        command.take(&mut bytes);
        assert!(bytes.ends_with(b"*1\r\n$3\r\nr:w\r\n"));
    }

    #[test]
    fn fixed_words_and_tokens_are_encoded_as_any_words() {
        let token = Token::from_random([0xAB; 20]);
        let (mut command, mut bytes) = (Command::default(), Vec::new());
        command.put_fixed(2, b"$2\r\nPX\r\n$1\r\n7\r\n").arg(&token).take(&mut bytes);
        let mut expected = redis::cmd("PX");
        expected.arg(7).arg(token.as_bytes());
        assert_eq!(bytes, expected.get_packed_command());
    }
}
