//! One log line for each event of a lock, as key=value pairs, for programs that have asked for it.

use std::fmt::Write;

/// The maximum number of bytes of a name in a line.
const NAME_MAX: usize = 256;

/// What is logged about locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tracing {
    #[default]
    Off,
    Events,
    /// Like `Events`, with the names of the resources.
    Resources,
}

impl Tracing {
    pub(crate) fn is_on(self) -> bool {
        self != Self::Off
    }

    pub(crate) fn names_resources(self) -> bool {
        self == Self::Resources
    }

    pub(super) fn line(self, event: &str, resource: Option<&[u8]>) -> TraceLine {
        let mut line = TraceLine(format!("event={event}"));
        if let Some(resource) = resource.filter(|_| self.names_resources()) {
            line.name("resource", resource);
        }
        line
    }
}

/// A line that is being built.
pub(super) struct TraceLine(String);

impl TraceLine {
    pub(super) fn word(&mut self, key: &str, word: &str) {
        let _ = write!(self.0, " {key}={word}");
    }

    pub(super) fn number(&mut self, key: &str, number: u64) {
        let _ = write!(self.0, " {key}={number}");
    }

    /// Writes milliseconds with three digits after the point, or nothing if there is no time.
    pub(super) fn time(&mut self, key: &str, us: Option<i64>) {
        if let Some(us) = us {
            let _ = write!(self.0, " {key}={}.{:03}", us / 1_000, us % 1_000);
        }
    }

    /// Writes a name in quotes, escaped so that the line stays one line.
    fn name(&mut self, key: &str, name: &[u8]) {
        let _ = write!(self.0, " {key}=\"");
        let end = name.len().min(NAME_MAX);
        for chunk in name[..end].utf8_chunks() {
            for letter in chunk.valid().chars() {
                match letter {
                    '"' | '\\' => self.0.extend(['\\', letter]),
                    '\0'..' ' | '\x7f' => {
                        let _ = write!(self.0, "\\x{:02x}", letter as u32);
                    }
                    letter if letter.is_control() => {
                        let _ = write!(self.0, "\\u{{{:x}}}", letter as u32);
                    }
                    letter => self.0.push(letter),
                }
            }
            for byte in chunk.invalid() {
                let _ = write!(self.0, "\\x{byte:02x}");
            }
        }
        self.0.push_str(if end < name.len() { "\"..." } else { "\"" });
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_visibly() {
        let line =
            |length: usize| Tracing::Resources.line("lost", Some(&vec![b'a'; length])).finish();
        assert!(line(NAME_MAX).ends_with("aa\""));
        let cut = line(NAME_MAX + 1);
        assert!(cut.ends_with("aa\"...") && cut.len() < NAME_MAX + 40, "{cut}");
    }

    #[test]
    fn a_trace_is_one_line() {
        let name = "a\n\r\0\u{85}\u{2028} b=c \u{e9}\u{1f512}".as_bytes();
        let line = Tracing::Resources.line("lost", Some(name)).finish();
        assert!(line.chars().all(|it| !it.is_control()), "{line:?}");
        assert!(line.contains("b=c \u{e9}\u{1f512}\""), "{line}");
    }
}
