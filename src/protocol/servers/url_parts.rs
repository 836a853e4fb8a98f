//! The parts of a URL: which of them is wrong, and what the parsers take in silence or do not know.

use std::borrow::Cow;

use url::{ParseError, Url};

/// The parts of a URL behind its scheme.
struct Parts<'a> {
    user: &'a str,
    password: &'a str,
    host: &'a str,
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Self {
        let rest = url.split_once("://").map_or(url, |it| it.1);
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        Self { user, password, host, path, query }
    }
}

/// Checks that each % begins an escaped byte. The parsers would take another one as it stands, and a password with a
/// typing error would be sent to the server.
pub(super) fn check_escapes(url: &str) -> Result<(), String> {
    let Parts { user, password, host, path, query } = Parts::of(url);
    let named =
        [("user", user), ("password", password), ("host", host), ("path", path), ("query", query)];
    match named.iter().find(|(_, text)| !is_escaped(text)) {
        None => Ok(()),
        Some((name, _)) => Err(format!("invalid % escape in the {name}: write % as %25")),
    }
}

/// What to do if a user or a password has a character that ends the part of a URL where a login is: an @ follows that
/// part. The parsers would name the port or the host as wrong. The query of a Sentinel URL may have an @.
pub(super) fn wrong_login(url: &str) -> Option<&'static str> {
    let rest = url.split_once("://").map_or(url, |it| it.1);
    let rest = rest.split("?sentinel_").next().unwrap_or_default();
    let further = &rest[rest.find(['/', '?', '#'])?..];
    further.contains('@').then_some("write / ? and # in a user or password as %2F %3F %23")
}

fn is_escaped(text: &str) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    let percent_signs = (0..bytes.len()).filter(|&at| bytes[at] == b'%');
    percent_signs.into_iter().all(|at| is_digit(bytes.get(at + 1)) && is_digit(bytes.get(at + 2)))
}

/// Checks a database number. The parser of numbers accepts a plus sign.
pub(super) fn check_database(text: &str) -> Result<(), &'static str> {
    match text.starts_with('+') {
        true => Err("the database number has a sign"),
        false => Ok(()),
    }
}

/// Checks that the query names nothing unknown, and nothing twice.
fn check_query(url: &Url, known: &[&'static str]) -> Result<(), String> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in url.query_pairs() {
        let Some(name) = known.iter().find(|it| **it == name) else {
            return Err(if known.is_empty() {
                "a query (?) is not allowed: put host, user and database before it".to_owned()
            } else {
                format!("unknown query parameter: known are {}", list(known))
            });
        };
        if seen.contains(name) {
            return Err(format!("query parameter {name} is given twice"));
        }
        if *name == "db" {
            check_database(&value)?;
        }
        seen.push(name);
    }
    Ok(())
}

/// `a, b and c`
fn list(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// The URL without the zone of its address, and the address with the zone, if it has one: as in
/// `redis://[fe80::1%25eth0]`. The parsers know no zones.
pub(super) fn without_zone(url: &str) -> (Cow<'_, str>, Option<String>) {
    let host = Parts::of(url).host;
    let address = host.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|it| it.0);
    let Some((address, zone)) = address.and_then(|address| address.split_once("%25")) else {
        return (Cow::Borrowed(url), None);
    };
    let plain = host.replacen(&format!("%25{zone}"), "", 1);
    let plain = url.replacen(host, &plain, 1);
    (Cow::Owned(plain), Some(format!("{address}%{zone}")))
}

/// What follows the place in a URL must have a meaning.
pub(super) fn check_extras(url: &Url, is_path: bool) -> Result<(), String> {
    if !is_path && url.host().is_none() {
        return Err("the host is missing".to_owned());
    }
    if url.fragment().is_some() {
        return Err("a fragment (#) is not allowed".to_owned());
    }
    check_query(url, if is_path { &["db", "user", "pass"] } else { &[] })
}

/// Which part of a URL could not be parsed.
pub(super) fn wrong_part(error: ParseError) -> &'static str {
    match error {
        ParseError::InvalidPort => "the port is not 1 to 65535",
        ParseError::EmptyHost => "the host is missing",
        ParseError::IdnaError
        | ParseError::InvalidIpv4Address
        | ParseError::InvalidIpv6Address
        | ParseError::InvalidDomainCharacter => "the host is not a valid host name or IP address",
        _ => "invalid host or port",
    }
}

/// Which part of a URL the redis crate rejects. The crate's words never quote the URL.
pub(super) fn wrong_value(error: &redis::RedisError) -> &'static str {
    const PARTS: [(&str, &str); 6] = [
        ("hostname", "the host is missing"),
        ("wildcard", "the host is a wildcard address"),
        ("database", "the database is not a number"),
        ("path", "invalid socket path: write unix:///path"),
        ("sername", "the user is not UTF-8"),
        ("assword", "the password is not UTF-8"),
    ];
    let words = error.to_string();
    PARTS
        .iter()
        .find(|part| words.contains(part.0))
        .map_or("it does not name a server", |part| part.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_begins_an_escaped_byte() {
        assert_eq!(check_escapes("redis://u%41:p%25@h%2e/1?a=%20"), Ok(()));
        for (url, part) in [
            ("redis://u%:s3cret@h", "user"),
            ("redis://u:s3cret%ZZ@h", "password"),
            ("redis://:s3cret%4@h", "password"),
            ("redis://u:p@h%", "host"),
            ("redis://[fe80::1%eth0]:1", "host"),
            ("unix:///a%2", "path"),
            ("unix:///a?pass=s3cret%x1", "query"),
            ("redis-sentinel://u:s3cret%+1@a,b/m", "password"),
            ("redis-sentinel://a/m?sentinel_password=s3cret%", "query"),
        ] {
            let words = check_escapes(url).expect_err("it is wrong");
            assert!(words.contains(&format!("in the {part}: write")), "{url}: {words}");
            assert!(!words.contains("s3cret"));
        }
    }

    #[test]
    fn a_login_that_ends_too_early_is_noticed() {
        for url in ["redis://:a/b@h:1", "redis://u:a?b@h", "redis://u:1#b@h", "redis://:a@b/c@h"] {
            assert!(wrong_login(url).is_some(), "{url}");
        }
        let sentinel = "redis-sentinel://u:p@a/m/x?sentinel_password=p@q";
        for url in ["redis://u:p@h/x", "redis://u:p@h", "redis://h/x", "redis://h:x", sentinel] {
            assert_eq!(wrong_login(url), None, "{url}");
        }
    }

    #[test]
    fn a_zone_is_split_from_the_url() {
        let it = |url| {
            let (plain, zone) = without_zone(url);
            (plain.into_owned(), zone)
        };
        let zone = Some("fe80::1%eth0".to_owned());
        let plain = "redis://u:p%25@[fe80::1]:7/1".to_owned();
        assert_eq!(it("redis://u:p%25@[fe80::1%25eth0]:7/1"), (plain, zone));
        for url in ["redis://[::1]:7", "redis://u%25:p@h/%25", "unix:///[a%25b]", "redis://h%25]"] {
            assert_eq!(it(url), (url.to_owned(), None));
        }
    }

    #[test]
    fn a_query_has_each_known_key_once() {
        let check = |query: &str, known: &[&'static str]| {
            let url = Url::parse(&format!("unix:///s?{query}")).expect("a URL");
            check_query(&url, known).map_or_else(|words| words, |()| String::new())
        };
        let known: &[&str] = &["db", "user", "pass"];
        assert_eq!(check("db=1&user=u&pass=p", known), "");
        assert_eq!(check("db=1&db=1", known), "query parameter db is given twice");
        assert_eq!(check("pass=p&pass=q", known), "query parameter pass is given twice");
        assert_eq!(check("db=%2B1", known), "the database number has a sign");
        assert_eq!(
            check("s3cret=1", known),
            "unknown query parameter: known are db, user and pass"
        );
        assert!(check("db=1", &[]).starts_with("a query (?) is not allowed"));
    }
}
