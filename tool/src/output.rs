//! What is told, and to whom. Nobody may be there to read it, and that is no reason to crash: least of all while a
//! program runs that is to be stopped in time.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::failure::{Failure, Kind};

/// Writes results to standard output, as they are.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    check(write!(output, "{text}").and_then(|()| output.flush()))
}

/// The same with the end of a line.
pub(crate) fn print_line(line: impl Display) -> Result<(), Failure> {
    print(format_args!("{line}\n"))
}

/// Writes a line to standard error, if anybody reads it. In one piece: others may write there as well.
pub(crate) fn tell(line: impl Display) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The same in words for a person.
pub(crate) fn tell_words(words: &str) {
    tell(format_args!("redlock: {}", harmless(words)));
}

/// A name may contain anything: it makes no other line, and does nothing to a terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { '\u{FFFD}' } else { it }).collect()
}

/// What has become of a write to standard output. Who reads no more, as `head`, has what it wants: then this ends with
/// the status of other programs, which SIGPIPE ends.
pub(crate) fn check(written: io::Result<()>) -> Result<(), Failure> {
    written.map_err(|error| {
        let kind = match error.kind() {
            ErrorKind::BrokenPipe => Kind::Signal(libc::SIGPIPE),
            _ => Kind::Usage,
        };
        Failure::new(kind, format!("standard output cannot be written: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_a_mark() {
        assert_eq!(harmless("a\u{1b}[31m\n\u{9b}µ"), "a\u{FFFD}[31m\u{FFFD}\u{FFFD}µ");
    }
}
