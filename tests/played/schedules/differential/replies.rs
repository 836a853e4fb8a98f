//! Parses replies of a real server and of a simulated one.

use crate::support::product::product;

/// Whether a reply is complete. An array contains numbers, and texts without line ends.
pub(super) fn is_whole(reply: &[u8]) -> bool {
    if let Some(rest) = reply.strip_prefix(b"*") {
        let text = String::from_utf8_lossy(rest);
        let mut lines = text.split("\r\n");
        let count = lines.next().and_then(|it| it.parse().ok());
        let texts = text.split("\r\n").filter(|it| it.starts_with('$')).count();
        let ends = text.matches("\r\n").count();
        return count.is_some_and(|it: usize| ends == it + 1 + texts);
    }
    let Some(line) = reply.windows(2).position(|it| it == b"\r\n") else { return false };
    match (reply[0], std::str::from_utf8(&reply[1..line]).ok().and_then(|it| it.parse().ok())) {
        (b'$', Some(length @ 0..)) => reply.len() as i64 == line as i64 + 2 + length + 2,
        _ => reply.len() == line + 2,
    }
}

pub(super) fn number(reply: &[u8]) -> Option<i64> {
    let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The numbers and the texts of an array, in order.
pub(super) fn parts(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(reply);
    let lines = text.split("\r\n").filter(|it| !it.starts_with(['$', '*']));
    lines.map(|it| it.trim_start_matches(':').to_owned()).collect()
}

/// An array of numbers; empty if the reply is none.
pub(super) fn numbers(reply: &[u8]) -> Vec<i64> {
    let Ok(text) = std::str::from_utf8(reply) else { return Vec::new() };
    let numbers: Option<Vec<i64>> = text
        .split_terminator("\r\n")
        .skip(1)
        .map(|it| it.strip_prefix(':').and_then(|it| it.parse().ok()))
        .collect();
    numbers.filter(|it| text == shape(it)).unwrap_or_default()
}

fn shape(numbers: &[i64]) -> String {
    let all: String = numbers.iter().map(|it| format!(":{it}\r\n")).collect();
    format!("*{}\r\n{all}", numbers.len())
}

/// An array of two numbers.
pub(super) fn pair(reply: &[u8]) -> Option<(i64, i64)> {
    let numbers = std::str::from_utf8(reply.strip_prefix(b"*2\r\n:")?).ok()?;
    let (first, second) = numbers.split_once("\r\n:")?;
    Some((first.parse().ok()?, second.strip_suffix("\r\n")?.parse().ok()?))
}

/// An array of three numbers.
pub(super) fn triple(reply: &[u8]) -> Option<(i64, i64, i64)> {
    let numbers = std::str::from_utf8(reply.strip_prefix(b"*3\r\n:")?).ok()?;
    let mut numbers = numbers.strip_suffix("\r\n")?.split("\r\n:");
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?, next()?))
}

/// Before Redis 7.0, an error in a script is an error of the script that contains the original error.
pub(super) fn is_wrapped(real: &[u8], code: &[u8]) -> bool {
    let words = String::from_utf8_lossy(real);
    product().is_before_7()
        && words.starts_with("-ERR Error running script")
        && words.contains(&*format!(" {} ", String::from_utf8_lossy(code)))
}

/// The first word of an error.
pub(super) fn code(reply: &[u8]) -> &[u8] {
    reply.split(|it| *it == b' ').next().unwrap_or_default()
}
