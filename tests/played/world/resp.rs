//! Parses the requests in a server's stream of bytes.

use std::ops::Range;

/// The maximum number of words in a request.
pub(crate) const WORDS_MAX: usize = 16;

/// The next request in `bytes`: where its words are, and where it ends. `None` if it is not complete; an
/// error if it is no request.
pub(crate) fn parse(bytes: &[u8], words: &mut Vec<Range<usize>>) -> Result<Option<usize>, ()> {
    words.clear();
    let Some((count, mut at)) = header(bytes, 0, b'*')? else { return Ok(None) };
    for _ in 0..count {
        let Some((length, start)) = header(bytes, at, b'$')? else { return Ok(None) };
        match bytes.get(start + length..start + length + 2) {
            None => return Ok(None),
            Some(b"\r\n") => words.push(start..start + length),
            Some(_) => return Err(()),
        }
        at = start + length + 2;
    }
    Ok(Some(at))
}

/// A line of this kind with a number, and where the next one begins.
fn header(bytes: &[u8], start: usize, kind: u8) -> Result<Option<(usize, usize)>, ()> {
    let Some(&first) = bytes.get(start) else { return Ok(None) };
    if first != kind {
        return Err(());
    }
    let mut number = 0;
    for (at, &byte) in bytes.iter().enumerate().skip(start + 1) {
        match byte {
            b'0'..=b'9' if number < 1 << 20 => number = 10 * number + usize::from(byte - b'0'),
            b'\r' if bytes.len() == at + 1 => return Ok(None),
            b'\r' if bytes[at + 1] == b'\n' => return Ok(Some((number, at + 2))),
            _ => return Err(()),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_only_when_complete() {
        let bytes = b"*2\r\n$4\r\nPTTL\r\n$1\r\nr\r\n*1\r\n";
        let whole = bytes.len() - 4;
        let mut words = Vec::new();
        for length in 0..whole {
            assert_eq!(parse(&bytes[..length], &mut words), Ok(None), "{length}");
        }
        assert_eq!(parse(bytes, &mut words), Ok(Some(whole)));
        assert_eq!(
            words.iter().map(|it| &bytes[it.clone()]).collect::<Vec<_>>(),
            [&b"PTTL"[..], b"r"]
        );
        assert_eq!(parse(b"PING\r\n", &mut words), Err(()));
    }
}
