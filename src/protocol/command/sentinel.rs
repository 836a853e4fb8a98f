//! The questions to a Sentinel: who it is, which other Sentinels it knows, and which server is the master that it
//! watches.
//!
//! `SENTINEL MASTER` tells the master and its epoch in one answer. `GET-MASTER-ADDR-BY-NAME` would tell the new master
//! while a failover is still in progress, without the epoch.

use std::collections::VecDeque;

use redis::Value;

use super::answer::failure_of;
use super::handshake::Credentials;
use super::heard::{Heard, Location, OwnerReport};
use super::identity::RunId;
use crate::protocol::failure::Failure;
use crate::protocol::moment::Moment;
use crate::protocol::refusal::Refusal;

/// The maximum number of other Sentinels that are taken from an answer.
const OTHERS_MAX: usize = 16;

/// A conversation with one Sentinel.
pub(crate) struct SentinelQuery {
    master: String,
    /// The questions without an answer so far.
    owed: VecDeque<Question>,
    has_begun: bool,
}

#[derive(Clone, Copy, Debug)]
enum Question {
    LogIn,
    Identity,
    Others,
    Master { asked_at: Moment },
}

impl SentinelQuery {
    /// The first questions on a connection. The bytes to send are appended to the outbox.
    pub(crate) fn new(
        master: &str,
        credentials: Option<&Credentials>,
        outbox: &mut Vec<u8>,
    ) -> Self {
        let mut owed = VecDeque::from([Question::Identity, Question::Others]);
        if let Some(login) = credentials {
            outbox.extend(login.command().get_packed_command());
            owed.push_front(Question::LogIn);
        }
        outbox.extend(redis::cmd("INFO").arg("server").get_packed_command());
        outbox.extend(redis::cmd("SENTINEL").arg("SENTINELS").arg(master).get_packed_command());
        Self { master: master.to_owned(), owed, has_begun: false }
    }

    /// Asks which server is the master.
    pub(crate) fn ask(&mut self, now: Moment, outbox: &mut Vec<u8>) {
        outbox.extend(redis::cmd("SENTINEL").arg("MASTER").arg(&self.master).get_packed_command());
        self.owed.push_back(Question::Master { asked_at: now });
    }

    /// Whether an answer is owed.
    pub(crate) fn is_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Whether the Sentinel has answered anything.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Handles the next reply.
    pub(crate) fn handle_reply(&mut self, reply: &Value) -> Heard {
        self.has_begun = true;
        match self.owed.pop_front() {
            Some(Question::LogIn) => match reply {
                Value::Okay => Heard::Nothing,
                Value::ServerError(error) => Heard::Refused(failure_of(error)),
                _ => Heard::Refused(Failure::ProtocolError),
            },
            // A user need not have the right to these. If the Sentinel refuses everything, it says so once more.
            Some(Question::Identity) => Heard::Identity(run_id(reply)),
            Some(Question::Others) => Heard::Others(others(reply)),
            Some(Question::Master { asked_at }) => match report(reply, asked_at) {
                Ok(report) => Heard::Owner(report),
                Err(failure) => Heard::Refused(failure),
            },
            None => Heard::Refused(Failure::ProtocolError),
        }
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn run_id(reply: &Value) -> Option<RunId> {
    text(reply)?.lines().find_map(|line| RunId::parse(line.strip_prefix("run_id:")?.trim_end()))
}

/// The value of a field, of names and values that alternate.
fn field<'a>(fields: &'a [Value], name: &str) -> Option<&'a str> {
    fields.chunks_exact(2).find(|it| text(&it[0]) == Some(name)).and_then(|it| text(&it[1]))
}

fn location(fields: &[Value]) -> Option<Location> {
    let port = field(fields, "port")?.parse().ok().filter(|&port| port > 0)?;
    Some((field(fields, "ip")?.to_owned(), port))
}

fn others(reply: &Value) -> Vec<Location> {
    let Value::Array(all) = reply else { return Vec::new() };
    let each = all.iter().filter_map(|it| match it {
        Value::Array(fields) => location(fields),
        _ => None,
    });
    each.take(OTHERS_MAX).collect()
}

/// The meaning of the reply to `SENTINEL MASTER`.
fn report(reply: &Value, asked_at: Moment) -> Result<OwnerReport, Failure> {
    let fields = match reply {
        Value::ServerError(error) => {
            let is_unknown = error.details().is_some_and(|it| it.contains("such master"));
            return Err(match failure_of(error) {
                _ if is_unknown => Failure::Refused(Refusal::UnknownMaster),
                unknown if unknown.is_of_no_command() => Failure::Refused(Refusal::NotSentinel),
                failure => failure,
            });
        }
        Value::Array(fields) => fields,
        _ => return Err(Failure::ProtocolError),
    };
    let number = |name| field(fields, name).and_then(|it| it.parse::<u64>().ok());
    let all = location(fields).zip(number("config-epoch")).zip(number("num-other-sentinels"));
    let ((at, epoch), others) = all.ok_or(Failure::ProtocolError)?;
    let is_moving = field(fields, "flags").is_none_or(|it| it.contains("failover_in_progress"));
    let others = usize::try_from(others).unwrap_or(usize::MAX);
    Ok(OwnerReport { at, epoch, others, is_moving, asked_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED_AT: Moment = Moment::from_nanos(7);

    fn parse(bytes: &str) -> Value {
        redis::parse_redis_value(bytes.as_bytes()).expect("a reply")
    }

    fn fields(all: &[(&str, &str)]) -> String {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let words: String = all.iter().map(|(name, value)| bulk(name) + &bulk(value)).collect();
        format!("*{}\r\n{words}", 2 * all.len())
    }

    const MASTER: [(&str, &str); 6] = [
        ("name", "m"),
        ("ip", "127.0.0.1"),
        ("port", "6379"),
        ("flags", "master"),
        ("config-epoch", "3"),
        ("num-other-sentinels", "2"),
    ];

    /// The result of the reply to the question for the master.
    fn heard(reply: &str) -> Heard {
        let mut it = SentinelQuery::new("m", None, &mut Vec::new());
        it.handle_reply(&Value::Nil);
        it.handle_reply(&Value::Nil);
        it.ask(ASKED_AT, &mut Vec::new());
        it.handle_reply(&parse(reply))
    }

    #[test]
    fn a_sentinel_is_asked_who_it_is_and_whom_it_knows() {
        let mut outbox = Vec::new();
        let credentials = Credentials { user: Some("u".into()), password: "p".into() };
        let mut it = SentinelQuery::new("m", Some(&credentials), &mut outbox);
        let sent = String::from_utf8(outbox).expect("a text");
        assert!(sent.starts_with("*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n"), "{sent}");
        assert!(sent.contains("INFO") && sent.contains("SENTINELS"), "{sent}");
        assert!(it.is_owed() && !it.has_begun());
        assert_eq!(it.handle_reply(&Value::Okay), Heard::Nothing);
        let id = RunId::sample('a');
        let info = format!("# Server\r\nrun_id:{}\r\n", id.as_str());
        let info = Value::BulkString(info.into_bytes());
        assert_eq!(it.handle_reply(&info), Heard::Identity(Some(id)));
        let other = fields(&[("ip", "10.0.0.2"), ("port", "26379")]);
        let others =
            parse(&format!("*3\r\n{other}*0\r\n{}", fields(&[("ip", "a"), ("port", "0")])));
        let known = vec![("10.0.0.2".to_owned(), 26_379)];
        assert_eq!(it.handle_reply(&others), Heard::Others(known));
        assert!(!it.is_owed() && it.has_begun());
        let mut outbox = Vec::new();
        it.ask(ASKED_AT, &mut outbox);
        assert_eq!(outbox, b"*3\r\n$8\r\nSENTINEL\r\n$6\r\nMASTER\r\n$1\r\nm\r\n");
        assert!(it.is_owed());
        // A reply that nobody has asked for.
        it.handle_reply(&Value::Nil);
        assert_eq!(it.handle_reply(&Value::Nil), Heard::Refused(Failure::ProtocolError));
    }

    #[test]
    fn a_report_has_the_address_and_the_epoch() {
        let report = |flags: &str| {
            let mut all = MASTER;
            all[3].1 = flags;
            heard(&fields(&all))
        };
        let (at, epoch, others) = (("127.0.0.1".to_owned(), 6379), 3, 2);
        for (flags, is_moving) in [
            ("master", false),
            ("master,s_down,o_down", false),
            ("master,failover_in_progress", true),
        ] {
            let expected =
                OwnerReport { at: at.clone(), epoch, others, is_moving, asked_at: ASKED_AT };
            assert_eq!(report(flags), Heard::Owner(expected), "{flags}");
        }
    }

    #[test]
    fn refusals_of_a_sentinel_have_own_messages() {
        let refused = |reply: &str| match heard(reply) {
            Heard::Refused(failure) => failure.to_string(),
            heard => format!("{heard:?}"),
        };
        assert_eq!(refused("-ERR No such master with that name\r\n"), "unknown master");
        assert_eq!(refused("-ERR unknown command 'SENTINEL'\r\n"), "not a Sentinel");
        assert!(refused("-NOAUTH secret\r\n").starts_with("NOAUTH: password required"));
        assert!(refused("-NOPERM secret\r\n").starts_with("NOPERM: user lacks"));
        let without = |name: &str| {
            let rest: Vec<_> = MASTER.into_iter().filter(|it| it.0 != name).collect();
            fields(&rest)
        };
        let with = |name: &str, value: &str| {
            fields(&MASTER.map(|(it, old)| (it, if it == name { value } else { old })))
        };
        for reply in [
            "+OK\r\n".to_owned(),
            "*-1\r\n".to_owned(),
            "*1\r\n:1\r\n".to_owned(),
            without("ip"),
            without("port"),
            without("config-epoch"),
            without("num-other-sentinels"),
            with("port", "0"),
            with("port", "65536"),
            with("port", "s3same"),
            with("config-epoch", "-1"),
        ] {
            assert!(refused(&reply).contains("protocol error"), "{reply:?}");
        }
        assert!(matches!(
            heard(&without("flags")),
            Heard::Owner(OwnerReport { is_moving: true, .. })
        ));
    }
}
