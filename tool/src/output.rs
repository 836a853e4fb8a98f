//! All output. The command must not crash if nobody reads its output, least of all while it must stop a
//! program in time.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::failure::{Failure, Kind};

/// Writes results to standard output, unchanged.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    check(write!(output, "{text}").and_then(|()| output.flush()))
}

/// Writes results with a line end.
pub(crate) fn print_line(line: impl Display) -> Result<(), Failure> {
    print(format_args!("{line}\n"))
}

/// Writes a line to standard error, and ignores errors. The line is written in one piece, because other
/// processes may write there as well.
pub(crate) fn tell(line: impl Display) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes a line for a person to standard error.
pub(crate) fn tell_words(words: &str) {
    tell(format_args!("redlock: {}", harmless(words)));
}

/// Replaces control characters. A name may contain anything, and must neither add a line to the output nor
/// control the terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { '\u{FFFD}' } else { it }).collect()
}

/// Converts the result of a write to standard output. A reader such as `head` may close the pipe when it
/// has read enough. Then this command ends with the status of other programs, which SIGPIPE ends.
pub(crate) fn check(written: io::Result<()>) -> Result<(), Failure> {
    written.map_err(|error| {
        let kind = match error.kind() {
            ErrorKind::BrokenPipe => Kind::Signal(libc::SIGPIPE),
            _ => Kind::Usage,
        };
        Failure::new(kind, format!("cannot write to standard output: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_marks() {
        assert_eq!(harmless("a\u{1b}[31m\n\u{9b}µ"), "a\u{FFFD}[31m\u{FFFD}\u{FFFD}µ");
    }
}
