//! The answer to `CLUSTER NODES`: the nodes of a cluster, as one of them knows them.

use std::ops::RangeInclusive;

use super::heard::Location;
use super::identity::RunId;

/// The nodes that count. Others are not known to the whole cluster yet, or not known where they are.
pub struct ClusterNodes<'a> {
    myself: ClusterNode<'a>,
    others: Vec<ClusterNode<'a>>,
}

/// A line of the answer.
pub struct ClusterNode<'a> {
    pub id: RunId,
    place: &'a str,
    flags: &'a str,
    /// The id of its master, if it is a replica.
    master: &'a str,
    /// The epoch in which it, or its master, became the owner of its slots.
    pub epoch: u64,
    slots: Vec<RangeInclusive<u16>>,
}

impl<'a> ClusterNodes<'a> {
    /// None if a line is none, or no line is about the node that has answered.
    pub fn parse(text: &'a str) -> Option<Self> {
        let nodes: Vec<ClusterNode<'_>> =
            text.lines().map(ClusterNode::parse).collect::<Option<Vec<_>>>()?;
        let is_counted = |it: &ClusterNode<'_>| !it.has("handshake") && !it.has("noaddr");
        let counted = nodes.into_iter().filter(is_counted);
        let (mine, others): (Vec<_>, Vec<_>) = counted.partition(|it| it.has("myself"));
        Some(Self { myself: mine.into_iter().next()?, others })
    }

    /// The node that has answered.
    pub fn myself(&self) -> &ClusterNode<'a> {
        &self.myself
    }

    pub fn others(&self) -> impl Iterator<Item = &ClusterNode<'a>> + Clone {
        self.others.iter()
    }

    pub fn all(&self) -> impl Iterator<Item = &ClusterNode<'a>> + Clone {
        [&self.myself].into_iter().chain(&self.others)
    }

    /// The owner of this slot. A slot that is on its way to another node is its own still.
    pub fn owner_of(&self, slot: u16) -> Option<&ClusterNode<'a>> {
        self.all().find(|it| it.has("master") && it.slots.iter().any(|all| all.contains(&slot)))
    }

    /// The masters that have slots.
    pub fn owners(&self) -> impl Iterator<Item = &ClusterNode<'a>> {
        self.all().filter(|it| it.has("master") && !it.slots.is_empty())
    }
}

impl<'a> ClusterNode<'a> {
    /// `<id> <ip:port@cport[,hostname[,…]]> <flags> <master> <ping> <pong> <epoch> <link> <slot> …`
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        let (id, place, flags) = (RunId::parse(words.next()?)?, words.next()?, words.next()?);
        let master = words.next()?;
        let epoch = words.nth(2)?.parse().ok()?;
        words.next()?;
        Some(Self { id, place, flags, master, epoch, slots: words.filter_map(range).collect() })
    }

    /// Whether it has this flag, such as `master`, `slave`, `fail?` or `fail`.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|it| it == flag)
    }

    /// Whether it is a replica of this master.
    pub fn follows(&self, master: RunId) -> bool {
        self.has("slave") && self.master == master.as_str()
    }

    /// Where it is: by its host name, if that is asked for and it has one, or by its address.
    pub fn location(&self, by_name: bool) -> Option<Location> {
        let (place, rest) = self.place.split_once('@')?;
        let name = rest.split(',').nth(1).filter(|it| by_name && !it.is_empty() && *it != "?");
        let host = name.or_else(|| Some(place.rsplit_once(':')?.0))?;
        (!host.is_empty()).then_some((host.to_owned(), self.port()?))
    }

    /// A node that does not know its own address has none before the port.
    pub(super) fn unplaced(&self) -> Option<Location> {
        Some((String::new(), self.port()?))
    }

    fn port(&self) -> Option<u16> {
        let (place, _) = self.place.split_once('@')?;
        place.rsplit_once(':')?.1.parse().ok().filter(|&port| port > 0)
    }
}

/// `7`, or `0-5460`. Slots that are being moved are in brackets: they are listed with their owner as well.
fn range(slots: &str) -> Option<RangeInclusive<u16>> {
    let number = |text: &str| text.parse::<u16>().ok();
    let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
    Some(number(first)?..=number(last)?).filter(|it| !it.is_empty())
}
