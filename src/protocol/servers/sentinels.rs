//! The Sentinels that know where a master is, as a URL names them:
//! `redis-sentinel://[user[:password]@]host[:port][,host[:port]…]/master[/database]`.

use std::fmt;

use url::Url;

use super::address::Address;
use super::hosts::{Noun, are_same, have_one_in_common, is_name};
use crate::protocol::command::handshake::Credentials;

/// The default port of Sentinels.
const PORT: u16 = 26_379;

/// The maximum number of Sentinels in one URL, and the number of them that are asked at most. More than a handful are of
/// no use.
pub(crate) const COUNT_MAX: usize = 16;

const NOUN: Noun = Noun { singular: "Sentinel", plural: "Sentinels" };

/// The maximum length of a master's name.
const NAME_MAX: usize = 128;

const USER: &str = "sentinel_username";
const PASSWORD: &str = "sentinel_password";

/// A master, by its name, and the Sentinels that know where it is.
#[derive(Clone)]
pub(crate) struct Sentinels {
    master: String,
    places: Vec<Address>,
    credentials: Option<Credentials>,
}

impl Sentinels {
    /// Parses the part of such a URL that follows the `://`. The second result is a URL of one server without
    /// Sentinels, with the same user, password and database. An error message does not quote the URL.
    pub(crate) fn parse(rest: &str) -> Result<(Self, String), String> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if tail.contains('#') {
            return Err("a fragment (#) is not allowed".to_owned());
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let credentials = credentials(query)?;
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (format!("{login}@"), hosts),
            None => (String::new(), authority),
        };
        let places = super::hosts::hosts(hosts, NOUN, PORT, COUNT_MAX)?;
        let mut parts = path.strip_prefix('/').unwrap_or_default().splitn(2, '/');
        let master = name(parts.next().unwrap_or_default())?;
        let database = parts.next().unwrap_or_default();
        if database.contains('/') {
            return Err("the path continues after the database".to_owned());
        }
        Ok((Self { master, places, credentials }, format!("redis://{login}host/{database}")))
    }

    pub(crate) fn master(&self) -> &str {
        &self.master
    }

    pub(crate) fn places(&self) -> &[Address] {
        &self.places
    }

    /// The login on the Sentinels. The master's password is not theirs.
    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Whether both ask for a master of the same name and have a Sentinel in common.
    pub(crate) fn are_related(&self, other: &Self) -> bool {
        self.master == other.master && have_one_in_common(&self.places, &other.places)
    }
}

/// Equal if both have the same master and the same Sentinels, in any order.
impl PartialEq for Sentinels {
    fn eq(&self, other: &Self) -> bool {
        self.master == other.master && are_same(&self.places, &other.places)
    }
}

/// One Sentinel is enough to tell the master from one of the same name that other Sentinels watch.
impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.master)?;
        self.places.first().map_or(Ok(()), |place| write!(f, " (Sentinel {place})"))
    }
}

fn name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(
            "the master name is missing: write redis-sentinel://host:26379/master".to_owned()
        );
    }
    // Sentinels accept only these bytes.
    if !is_name(text, NAME_MAX) {
        let words =
            "the master name is not 1 to 128 letters, digits, dots, hyphens and underscores";
        return Err(words.to_owned());
    }
    Ok(text.to_owned())
}

/// The login on the Sentinels, from the query.
fn credentials(query: &str) -> Result<Option<Credentials>, String> {
    let url = Url::parse(&format!("redis://host/?{query}"));
    let url = url.map_err(|_| "invalid query".to_owned())?;
    let (mut user, mut password) = (None, None);
    for (name, value) in url.query_pairs() {
        let slot = match &*name {
            USER => &mut user,
            PASSWORD => &mut password,
            _ => {
                return Err(format!(
                    "unknown query parameter: known are {USER} and {PASSWORD}; the master name goes into the path"
                ));
            }
        };
        if slot.replace(value.into_owned().into_bytes()).is_some() {
            return Err(format!("query parameter {name} is given twice"));
        }
    }
    match (user, password) {
        (None, None) => Ok(None),
        (user, Some(password)) => Ok(Some(Credentials { user, password })),
        (Some(_), None) => Err(format!("the query has {USER} without {PASSWORD}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<(Sentinels, String), String> {
        Sentinels::parse(rest)
    }

    fn words(rest: &str) -> String {
        parse(rest).map_or_else(|words| words, |(it, plain)| format!("{it} {plain}"))
    }

    #[test]
    fn a_url_names_the_sentinels_and_the_master() {
        let (it, plain) = parse("u:p%40@H1,h2:7,[::1],[::2]:8/mymaster/3").expect("a URL");
        let places: Vec<String> = it.places().iter().map(Address::to_string).collect();
        assert_eq!(places, ["h1:26379", "h2:7", "[::1]:26379", "[::2]:8"]);
        assert_eq!((it.master(), plain.as_str()), ("mymaster", "redis://u:p%40@host/3"));
        assert!(it.credentials().is_none());
        assert_eq!(it.to_string(), "mymaster (Sentinel h1:26379)");
        let (it, _) = parse("h/m?sentinel_password=p%2B&sentinel_username=u").expect("a URL");
        let told = Credentials { user: Some("u".into()), password: "p+".into() };
        assert_eq!(it.credentials(), Some(&told));
    }

    #[test]
    fn an_error_in_a_url_is_named_and_not_quoted() {
        for (rest, part) in [
            ("h", "master name is missing"),
            ("h/", "master name is missing"),
            ("h//0", "master name is missing"),
            ("h/s3cret%20", "the master name is not"),
            ("h/s3cret,b", "the master name is not"),
            ("h/m/0/s3cret", "continues after"),
            ("/m", "Sentinel host is missing"),
            ("u:s3cret@/m", "Sentinel host is missing"),
            ("h,/m", "Sentinel host is missing"),
            ("h,H:26379/m", "twice"),
            ("h:0/m", "port of a Sentinel"),
            ("h:s3cret/m", "port of a Sentinel"),
            ("h:65536/m", "port of a Sentinel"),
            ("::1/m", "brackets"),
            ("s3cret!/m", "not a valid host name"),
            ("[s3cret]x/m", "not a valid host name"),
            ("h/m#s3cret", "fragment"),
            ("h/0?sentinelMasterId=s3cret", "unknown query parameter"),
            ("h/m?sentinel_username=s3cret", "without sentinel_password"),
            ("h/m?sentinel_password=s3cret&sentinel_password=s3cret", "twice"),
        ] {
            let words = words(rest);
            assert!(words.contains(part) && !words.contains("s3cret"), "{rest}: {words}");
        }
        let many: Vec<String> = (0..=COUNT_MAX).map(|it| format!("h{it}")).collect();
        assert!(words(&format!("{}/m", many.join(","))).contains("more than 16"));
    }

    #[test]
    fn the_order_of_the_sentinels_does_not_matter() {
        let it = |rest| parse(rest).expect("a URL").0;
        assert!(it("a,b/m") == it("b,a:26379/m"));
        assert!(it("a,b/m") != it("a,c/m"));
        assert!(it("a,b/m") != it("a,b/n") && it("a,b/m") != it("a,b,c/m"));
        assert!(it("a,b/m").are_related(&it("b,c/m")));
        assert!(!it("a,b/m").are_related(&it("b,c/n")) && !it("a/m").are_related(&it("b/m")));
    }
}
