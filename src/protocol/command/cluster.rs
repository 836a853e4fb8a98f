//! The question to a node of a cluster: which nodes there are, and which of them owns a slot.
//!
//! `CLUSTER NODES` tells the owner and its epoch in one answer. `CLUSTER SLOTS`, `CLUSTER SHARDS` and MOVED tell no epoch.

use std::collections::VecDeque;

use redis::Value;

use super::answer::failure_of;
use super::cluster_nodes::{ClusterNode, ClusterNodes};
use super::handshake::Credentials;
use super::heard::{ClusterMap, Heard, OwnerReport};
use crate::protocol::failure::Failure;
use crate::protocol::moment::Moment;

/// The maximum number of other nodes that are taken from an answer.
const OTHERS_MAX: usize = 64;

/// A conversation with one node.
pub(crate) struct ClusterQuery {
    slot: u16,
    /// Whether nodes are reached by their host names, which their certificates are for, where they have one.
    by_name: bool,
    /// The questions without an answer so far: when the map was asked for. None for the login.
    owed: VecDeque<Option<Moment>>,
    has_begun: bool,
}

impl ClusterQuery {
    /// Begins a conversation. The bytes to send are appended to the outbox.
    pub(crate) fn new(
        slot: u16,
        by_name: bool,
        credentials: Option<&Credentials>,
        outbox: &mut Vec<u8>,
    ) -> Self {
        let mut owed = VecDeque::new();
        if let Some(login) = credentials {
            outbox.extend(login.command().get_packed_command());
            owed.push_back(None);
        }
        Self { slot, by_name, owed, has_begun: false }
    }

    pub(crate) fn ask(&mut self, now: Moment, outbox: &mut Vec<u8>) {
        outbox.extend(redis::cmd("CLUSTER").arg("NODES").get_packed_command());
        self.owed.push_back(Some(now));
    }

    pub(crate) fn is_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(crate) fn handle_reply(&mut self, reply: &Value) -> Heard {
        self.has_begun = true;
        match (self.owed.pop_front(), reply) {
            (Some(_), Value::ServerError(error)) => Heard::Refused(failure_of(error)),
            (Some(None), Value::Okay) => Heard::Nothing,
            (Some(Some(asked_at)), Value::BulkString(text)) => {
                let map = str::from_utf8(text).ok().and_then(|text| self.map(text, asked_at));
                map.map_or(Heard::Refused(Failure::ProtocolError), Heard::Map)
            }
            _ => Heard::Refused(Failure::ProtocolError),
        }
    }

    /// The meaning of the answer. None if it is no map.
    fn map(&self, text: &str, asked_at: Moment) -> Option<ClusterMap> {
        let nodes = ClusterNodes::parse(text)?;
        let myself = nodes.myself();
        let location = |it: &ClusterNode<'_>| it.location(self.by_name);
        let owner = nodes.owner_of(self.slot).and_then(|it| {
            let at = location(it);
            let at = at.or_else(|| (it.id == myself.id).then(|| it.unplaced()).flatten());
            Some(OwnerReport {
                at: at?,
                epoch: it.epoch,
                others: nodes.others().count(),
                is_moving: false,
                asked_at,
            })
        });
        let located = nodes.others().filter_map(|it| Some((it.id, location(it)?)));
        let others = located.take(OTHERS_MAX).collect();
        Some(ClusterMap { id: Some(myself.id), others, owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::command::heard::Location;
    use crate::protocol::command::identity::RunId;

    const ASKED_AT: Moment = Moment::from_nanos(7);

    fn id(digit: char) -> String {
        RunId::sample(digit).as_str().to_owned()
    }

    fn location(host: &str, port: u16) -> Location {
        (host.to_owned(), port)
    }

    /// What a node says, in the form of Redis 7.0. The first line is its own.
    fn map(by_name: bool, lines: &[String]) -> Heard {
        let mut it = ClusterQuery::new(300, by_name, None, &mut Vec::new());
        it.ask(ASKED_AT, &mut Vec::new());
        it.handle_reply(&Value::BulkString((lines.join("\n") + "\n").into_bytes()))
    }

    fn owner(heard: Heard) -> Option<OwnerReport> {
        let Heard::Map(map) = heard else { panic!("no map: {heard:?}") };
        map.owner
    }

    fn node(digit: char, place: &str, flags: &str, rest: &str) -> String {
        format!("{} {place} {flags} - 0 1 {rest}", id(digit))
    }

    #[test]
    fn a_node_is_asked_for_its_map() {
        let mut outbox = Vec::new();
        let credentials = Credentials { user: None, password: "p".into() };
        let mut it = ClusterQuery::new(1, false, Some(&credentials), &mut outbox);
        it.ask(ASKED_AT, &mut outbox);
        assert_eq!(
            outbox,
            b"*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n"
        );
        assert!(it.is_owed() && !it.has_begun());
        assert_eq!(it.handle_reply(&Value::Okay), Heard::Nothing);
        assert!(it.is_owed() && it.has_begun());
        it.handle_reply(&Value::Nil);
        assert!(!it.is_owed());
        // A reply that nobody has asked for.
        assert_eq!(it.handle_reply(&Value::Nil), Heard::Refused(Failure::ProtocolError));
    }

    #[test]
    fn a_map_names_the_nodes_and_the_owner_of_the_slot() {
        let lines = [
            node('a', "10.0.0.1:6379@16379,", "myself,slave", "3 connected"),
            node('b', "10.0.0.2:7000@17000,", "master", "3 connected 0-299 301"),
            node('c', "10.0.0.3:6379@16379,", "master", "7 connected 5 300-400 [9->-x]"),
            node('d', "10.0.0.4:0@16379,", "slave", "7 connected"),
            node('e', ":0@0", "master,noaddr", "9 disconnected 300"),
            node('f', "10.0.0.6:6379@16379", "handshake", "0 disconnected"),
        ];
        let at = location("10.0.0.3", 6379);
        let report = OwnerReport {
            at: at.clone(),
            epoch: 7,
            others: 3,
            is_moving: false,
            asked_at: ASKED_AT,
        };
        let others = [('b', location("10.0.0.2", 7000)), ('c', at)];
        let expected = ClusterMap {
            id: Some(RunId::sample('a')),
            others: others.map(|(digit, at)| (RunId::sample(digit), at)).to_vec(),
            owner: Some(report),
        };
        assert_eq!(map(false, &lines), Heard::Map(expected));
    }

    /// With TLS, their certificates are for their names.
    #[test]
    fn a_node_is_reached_by_its_name_where_it_has_one() {
        for (place, by_name, host) in [
            ("10.0.0.1:1@2,n.example", true, "n.example"),
            ("10.0.0.1:1@2,n.example,shard-id=x", true, "n.example"),
            ("10.0.0.1:1@2,n.example", false, "10.0.0.1"),
            ("10.0.0.1:1@2,?", true, "10.0.0.1"),
            ("10.0.0.1:1@2,", true, "10.0.0.1"),
            ("10.0.0.1:1@2", true, "10.0.0.1"),
            ("2001:db8::1:1@2", true, "2001:db8::1"),
            // It does not know its own address, and is where it was asked.
            (":1@2", false, ""),
        ] {
            let mine = node('a', place, "myself,master", "1 connected 0-16383");
            let report = owner(map(by_name, &[mine])).expect(place);
            assert_eq!((report.at, report.others), (location(host, 1), 0), "{place}");
        }
    }

    #[test]
    fn a_slot_may_have_no_owner() {
        let mine =
            |slots: &str| node('a', "h:1@2", "myself,master", &format!("1 connected{slots}"));
        // One is about to come from another node. One is half of a range that is none.
        for slots in ["", " 299 301", " [300-<-x]", " 300-", " -300", " 400-200", " x-y"] {
            assert_eq!(owner(map(false, &[mine(slots)])), None, "{slots}");
        }
        // A node that has failed is the owner still, until another one is elected.
        let other = |flags: &str| node('b', "h:3@4", flags, "2 connected 300");
        let report = owner(map(false, &[mine(""), other("master,fail")])).expect("it is named");
        assert_eq!(report.at, location("h", 3));
        for flags in ["slave", "master,handshake", "master,noaddr"] {
            assert_eq!(owner(map(false, &[mine(""), other(flags)])), None, "{flags}");
        }
        // Nobody knows where it is.
        let lost = node('b', ":3@4", "master", "2 connected 300");
        assert_eq!(owner(map(false, &[mine(""), lost])), None);
    }

    #[test]
    fn an_answer_that_is_no_map_is_refused() {
        let mine = node('a', "h:1@2", "myself,master", "1 connected 300");
        let other = node('b', "h:3@4", "master", "2 connected");
        for lines in [
            vec![],
            vec![String::new()],
            vec![other.clone()],
            vec![mine.clone(), "x".to_owned()],
            vec![mine.replace(" 1 connected", " one connected")],
            vec![mine.replace(" 1 connected 300", "")],
            vec![mine.replacen(&id('a'), "a", 1)],
        ] {
            assert_eq!(map(false, &lines), Heard::Refused(Failure::ProtocolError), "{lines:?}");
        }
        let mut it = ClusterQuery::new(1, false, None, &mut Vec::new());
        it.ask(ASKED_AT, &mut Vec::new());
        let disabled = b"-ERR This instance has cluster support disabled\r\n";
        let reply = redis::parse_redis_value(disabled).expect("a reply");
        assert!(matches!(it.handle_reply(&reply), Heard::Refused(_)));
        it.ask(ASKED_AT, &mut Vec::new());
        let binary = Value::BulkString(vec![0xff]);
        assert_eq!(it.handle_reply(&binary), Heard::Refused(Failure::ProtocolError));
    }

    /// It must not grow with what a node says.
    #[test]
    fn so_many_other_nodes_are_taken() {
        let place = |number: usize| format!("h:{}@2", number + 1);
        let ids = (1..=1_000).map(|number| format!("{number:040x}"));
        let others = ids
            .enumerate()
            .map(|(number, id)| format!("{id} {} slave - 0 1 1 connected", place(number)));
        let mine = node('a', "h:1@2", "myself,master", "1 connected 300");
        let lines: Vec<String> = [mine].into_iter().chain(others).collect();
        let Heard::Map(map) = map(false, &lines) else { panic!("no map") };
        assert_eq!(map.others.len(), OTHERS_MAX);
        // A majority of all is needed nevertheless.
        assert_eq!(map.owner.expect("its own").others, 1_000);
    }
}
