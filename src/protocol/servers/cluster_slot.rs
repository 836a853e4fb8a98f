//! One slot of a cluster as a voter, as a URL names it:
//! `redis-cluster://[user[:password]@]host[:port][,host[:port]…][?tag=name]`.
//!
//! All keys of the voter have the tag in braces before their names. So all of them are in the same slot, and on the
//! same node at any time.

use std::fmt;

use url::Url;

use super::address::Address;
use super::hosts::{Noun, are_same, have_one_in_common, hosts, is_name};

/// The default port of servers.
const PORT: u16 = 6_379;

/// The maximum number of nodes in one URL, and the maximum number of nodes that are asked.
pub const COUNT_MAX: usize = 64;

const TAG: &str = "tag";
const TAG_MAX: usize = 32;
const TAG_DEFAULT: &str = "redlock";

/// Redis has so many slots, and no more can be had: the page "Redis cluster specification".
const SLOTS: u16 = 16_384;

/// The tag of all keys, and the nodes that are asked first who has them.
#[derive(Clone)]
pub struct ClusterSlot {
    tag: String,
    seeds: Vec<Address>,
}

impl ClusterSlot {
    /// Parses the part of such a URL that follows the `://`. The second result is a URL of one server, with the same user
    /// and password. An error message does not quote the URL.
    pub(crate) fn parse(rest: &str) -> Result<(Self, String), String> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if tail.contains('#') {
            return Err("a fragment (#) is not allowed".to_owned());
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        if !matches!(path, "" | "/") {
            return Err(
                "a cluster has no database numbers: nothing may follow the nodes but ?tag="
                    .to_owned(),
            );
        }
        let (login, nodes) = match authority.rsplit_once('@') {
            Some((login, nodes)) => (format!("{login}@"), nodes),
            None => (String::new(), authority),
        };
        let seeds = hosts(nodes, Noun { singular: "node", plural: "nodes" }, PORT, COUNT_MAX)?;
        Ok((Self { tag: tag(query)?, seeds }, format!("redis://{login}host")))
    }

    pub fn tag(&self) -> &str {
        &self.tag
    }

    pub(crate) fn seeds(&self) -> &[Address] {
        &self.seeds
    }

    /// The slot of its keys.
    pub fn slot(&self) -> u16 {
        slot_of(&self.tag)
    }

    /// Whether both have the same keys if they are of the same cluster, and have a node in common.
    pub(crate) fn are_related(&self, other: &Self) -> bool {
        self.tag == other.tag && have_one_in_common(&self.seeds, &other.seeds)
    }
}

/// Equal if both have the same tag and the same nodes, in any order.
impl PartialEq for ClusterSlot {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && are_same(&self.seeds, &other.seeds)
    }
}

impl fmt::Display for ClusterSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag {}", self.tag)?;
        self.seeds.first().map_or(Ok(()), |node| write!(f, " (cluster {node})"))
    }
}

/// The slot of all keys that have this tag.
pub fn slot_of(tag: &str) -> u16 {
    crc16(tag.as_bytes()) % SLOTS
}

fn tag(query: &str) -> Result<String, String> {
    let url = Url::parse(&format!("redis://host/?{query}"));
    let url = url.map_err(|_| "invalid query".to_owned())?;
    let mut tag = None;
    for (name, value) in url.query_pairs() {
        if name != TAG {
            return Err(format!("unknown query parameter: known is {TAG}"));
        }
        if tag.replace(value.into_owned()).is_some() {
            return Err(format!("query parameter {TAG} is given twice"));
        }
    }
    let tag = tag.unwrap_or_else(|| TAG_DEFAULT.to_owned());
    if !is_name(&tag, TAG_MAX) {
        return Err(format!(
            "the tag is not 1 to {TAG_MAX} letters, digits, dots, hyphens and underscores"
        ));
    }
    Ok(tag)
}

/// CRC-16/XMODEM, as in the page "Redis cluster specification".
fn crc16(text: &[u8]) -> u16 {
    text.iter().fold(0, |crc: u16, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(rest: &str) -> String {
        ClusterSlot::parse(rest).map_or_else(|words| words, |(it, plain)| format!("{it} {plain}"))
    }

    #[test]
    fn a_url_names_nodes_and_the_tag() {
        let (it, plain) = ClusterSlot::parse("u:p%40@H1,h2:7,[::1]?tag=A.b-c_9").expect("a URL");
        let seeds: Vec<String> = it.seeds().iter().map(Address::to_string).collect();
        assert_eq!(seeds, ["h1:6379", "h2:7", "[::1]:6379"]);
        assert_eq!((it.tag(), &*plain), ("A.b-c_9", "redis://u:p%40@host"));
        assert_eq!(it.to_string(), "tag A.b-c_9 (cluster h1:6379)");
        assert_eq!(words("h"), "tag redlock (cluster h:6379) redis://host");
        assert_eq!(words("h/"), "tag redlock (cluster h:6379) redis://host");
    }

    #[test]
    fn an_error_in_a_url_is_named_and_not_quoted() {
        for (rest, part) in [
            ("h/0", "no database numbers"),
            ("h/s3cret", "no database numbers"),
            ("u:s3cret@", "node host is missing"),
            ("h,", "node host is missing"),
            ("h,H:6379", "a node is listed twice"),
            ("h:0", "the port of a node"),
            ("h:s3cret", "the port of a node"),
            ("::1", "brackets"),
            ("s3cret!", "not a valid host name"),
            ("h#s3cret", "fragment"),
            ("h?db=s3cret", "unknown query parameter: known is tag"),
            ("h?tag=a&tag=s3cret", "twice"),
            ("h?tag=", "the tag is not 1 to 32"),
            ("h?tag=s3cret%7D", "the tag is not 1 to 32"),
            ("h?tag=a%20s3cret", "the tag is not 1 to 32"),
        ] {
            let words = words(rest);
            assert!(words.contains(part) && !words.contains("s3cret"), "{rest}: {words}");
        }
        assert!(words(&format!("h?tag={}", "t".repeat(33))).contains("1 to 32"));
        let many: Vec<String> = (0..=COUNT_MAX).map(|it| format!("h{it}")).collect();
        assert!(words(&many.join(",")).contains("more than 64 nodes"));
    }

    /// As `CLUSTER KEYSLOT` of Redis 7.0 says.
    #[test]
    fn the_slot_is_that_of_the_servers() {
        let slot = |tag: &str| ClusterSlot::parse(&format!("h?tag={tag}")).expect("a URL").0.slot();
        assert_eq!(crc16(b"123456789"), 0x31C3, "the check value of the specification");
        assert_eq!([slot("foo"), slot("a"), slot("b")], [12_182, 15_495, 3_300]);
    }

    #[test]
    fn the_order_of_the_nodes_does_not_matter() {
        let it = |rest| ClusterSlot::parse(rest).expect("a URL").0;
        assert!(it("a,b") == it("b,a:6379") && it("a,b") != it("a,c") && it("a") != it("a?tag=b"));
        assert!(it("a,b").are_related(&it("b,c")) && !it("a,b").are_related(&it("b,c?tag=x")));
    }
}
