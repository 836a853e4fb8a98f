//! Reads the shortest kinds of replies without a parser. Nearly all replies are of these kinds.

use redis::Value;

/// The longest number and the longest string that [`simple`] reads.
const SIMPLE_DIGITS_MAX: usize = 18;
const SIMPLE_STRING_MAX: usize = 1024;

/// The number at the start of these bytes and the length of the reply, if it is a number.
pub(crate) fn number(bytes: &[u8]) -> Option<(i64, usize)> {
    let (number, length) = short_number(bytes.strip_prefix(b":")?)?;
    Some((number, 1 + length))
}

/// The time at the start of these bytes, in microseconds, and the length of the reply, if it is one to `TIME`.
pub(crate) fn time_us(bytes: &[u8]) -> Option<(i64, usize)> {
    let (seconds, first) = number_in_string(bytes.strip_prefix(b"*2\r\n")?)?;
    let (micros, second) = number_in_string(&bytes[4 + first..])?;
    Some((seconds.checked_mul(1_000_000)?.checked_add(micros)?, 4 + first + second))
}

/// The number that is the whole string, which has another length otherwise.
fn number_in_string(bytes: &[u8]) -> Option<(i64, usize)> {
    let (size, head) = short_number(bytes.strip_prefix(b"$")?)?;
    let (number, length) = short_number(bytes.get(1 + head..)?)?;
    (i64::try_from(length) == Ok(size + 2)).then_some((number, 1 + head + length))
}

/// The first reply and its length, if it is complete and of one of these kinds. Nearly all replies are. For
/// each reply the crate's parser zeroes 8 KiB, which was four fifths of all our computing time.
pub(crate) fn simple(bytes: &[u8]) -> Option<(Value, usize)> {
    match bytes {
        [b':', rest @ ..] => {
            let (number, length) = short_number(rest)?;
            Some((Value::Int(number), 1 + length))
        }
        [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((Value::Okay, 5)),
        [b'$', b'-', b'1', b'\r', b'\n', ..] => Some((Value::Nil, 5)),
        [b'$', ..] => short_string(bytes),
        // The reply to `TIME`.
        [b'*', b'2', b'\r', b'\n', both @ ..] => {
            let (first, first_length) = short_string(both)?;
            let (second, second_length) = short_string(&both[first_length..])?;
            Some((Value::Array(vec![first, second]), 4 + first_length + second_length))
        }
        _ => None,
    }
}

fn short_string(bytes: &[u8]) -> Option<(Value, usize)> {
    let (size, length) = short_number(bytes.strip_prefix(b"$")?)?;
    let size = usize::try_from(size).ok().filter(|&size| size <= SIMPLE_STRING_MAX)?;
    let (string, end) = bytes[1 + length..].split_at_checked(size)?;
    let whole = 1 + length + size + 2;
    end.starts_with(b"\r\n").then(|| (Value::BulkString(string.to_vec()), whole))
}

/// The number on a line and the length of the line, if the line is complete and has few digits.
fn short_number(bytes: &[u8]) -> Option<(i64, usize)> {
    let is_negative = bytes.first() == Some(&b'-');
    let digits = &bytes[usize::from(is_negative)..];
    let (mut number, mut count) = (0, 0);
    while let Some(digit @ 0..=9) = digits.get(count).map(|byte| byte.wrapping_sub(b'0')) {
        if count == SIMPLE_DIGITS_MAX {
            return None;
        }
        number = 10 * number + i64::from(digit);
        count += 1;
    }
    if count == 0 || !digits[count..].starts_with(b"\r\n") {
        return None;
    }
    let length = usize::from(is_negative) + count + 2;
    Some((if is_negative { -number } else { number }, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_replies_are_parsed_as_by_the_redis_crate() {
        for whole in [
            &b"+OK\r\n"[..],
            b"$-1\r\n",
            b":0\r\n",
            b":-0\r\n",
            b":-12\r\n",
            b":999999999999999999\r\n",
            b"$0\r\n\r\n",
            b"$3\r\na\r\n\r\n",
            b"*2\r\n$10\r\n1795621208\r\n$2\r\n57\r\n",
        ] {
            let expected = redis::parse_redis_value(whole).expect("a reply");
            assert_eq!(simple(whole), Some((expected.clone(), whole.len())));
            assert_eq!(simple(&[whole, b":1\r\n"].concat()), Some((expected, whole.len())));
            for length in 0..whole.len() {
                assert_eq!(simple(&whole[..length]), None, "{length} of {}", whole.escape_ascii());
            }
        }
    }

    #[test]
    fn a_number_and_a_time_are_read_without_a_value() {
        assert_eq!(number(b":12\r\n:3\r\n"), Some((12, 5)));
        assert_eq!((number(b":12\r"), number(b"+OK\r\n")), (None, None));
        let time = b"*2\r\n$10\r\n1795621208\r\n$2\r\n57\r\n";
        assert_eq!(time_us(time), Some((1_795_621_208_000_057, time.len())));
        assert_eq!(
            time_us(&[&time[..], b"+OK\r\n"].concat()),
            Some((1_795_621_208_000_057, time.len()))
        );
        for length in 0..time.len() {
            assert_eq!(time_us(&time[..length]), None, "{length}");
        }
        for other in
            [&b"*2\r\n$1\r\n12\r\n$1\r\n1\r\n"[..], b"*2\r\n:1\r\n:1\r\n", b"*1\r\n$1\r\n1\r\n"]
        {
            assert_eq!(time_us(other), None, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn other_replies_are_left_to_the_redis_crate() {
        let long = [b"$1025\r\n", &[b'x'; 1025][..], b"\r\n"].concat();
        for other in [
            &long[..],
            b":1234567890123456789\r\n",
            b":\r\n",
            b":-\r\n",
            b":1x\r\n",
            b":1\rx",
            b":+1\r\n",
            b"$-2\r\n",
            b"$1\r\nabc",
            b"$\r\n\r\n",
            b"+PONG\r\n",
            b"-ERR no\r\n",
            b"*1\r\n:1\r\n",
            b"*2\r\n:1\r\n:2\r\n",
            b"*2\r\n$1\r\na\r\n$-1\r\n",
            b"*2\r\n$1\r\na\r\n:1\r\n",
        ] {
            assert_eq!(simple(other), None, "{}", other.escape_ascii());
        }
        let most = [b"$1024\r\n", &[b'x'; 1024][..], b"\r\n"].concat();
        assert_eq!(simple(&most).map(|it| it.1), Some(most.len()));
    }
}
