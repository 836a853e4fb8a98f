//! Connecting: a quorum of connections before the servers are asked, and the call that only connects.

use super::restore::Restore;
use super::round::Round;
use super::{Actions, Ended, Event, Limits, Miss, Operation, Prepared, QUESTION_TTL_MS, reply_ms};
use crate::protocol::error::Status;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::tally::Outcome;

/// How long the other servers get to follow once a quorum is connected: as long as the quorum took, within
/// bounds. In a call that has something else to do, the time lies between these two values. In a call that only
/// connects, it is at least the larger value.
const STRAGGLERS_MIN_MS: i64 = 2;
const STRAGGLERS_MS: i64 = 20;

/// Connects to a quorum, or says why that failed. All other operations use this if there is no quorum of
/// connections yet.
pub(super) struct ConnectQuorum {
    stage: Stage,
    /// When it began to connect. The time for passwords and names is left out.
    began: Moment,
    /// When to stop waiting for a quorum, and when to stop waiting for anything.
    until: Moment,
    limit: Moment,
    /// Names are looked up if fewer servers than this are promising without that.
    enough: usize,
    ttl_ms: i64,
    /// Whether the call has nothing else to do.
    is_alone: bool,
}

enum Stage {
    /// Passwords are asked for, and names are looked up.
    Preparing,
    Connecting(Box<Round>),
    /// The servers that seemed promising were not enough. Names that were left out before are looked up.
    LookingUpTheRest(Box<Round>),
    /// A quorum is connected, and the other servers may follow. Passwords are asked for again.
    PreparingToFollow,
    Following(Box<Round>),
}

/// The state of the attempt.
pub(super) enum Progress {
    Pending,
    Connected,
    Failed(Miss),
}

impl ConnectQuorum {
    /// Prepares for a request about a lock of this TTL. Nothing is waited for after `limit`. Returns nothing if
    /// there is a quorum of connections already.
    pub(super) fn if_needed(
        limit: Moment,
        ttl_ms: i64,
        actions: &mut dyn Actions,
    ) -> Option<Box<Self>> {
        let enough = actions.roster().len() / 2 + 1;
        let reply_ms = reply_ms(actions, ttl_ms);
        if actions.is_connected(enough, reply_ms) {
            return None;
        }
        let began = actions.now();
        let connect_ms = actions.policy().connect_ms();
        let until = began.plus_ms(connect_ms).min(limit);
        actions.prepare(enough);
        let stage = Stage::Preparing;
        Some(Box::new(Self { stage, began, until, limit, enough, ttl_ms, is_alone: false }))
    }

    /// For a call that has nothing else to do: it looks up all names and waits longer for the other servers.
    fn alone(limit: Moment, actions: &mut dyn Actions) -> Box<Self> {
        let (began, enough) = (actions.now(), actions.roster().len());
        actions.prepare(enough);
        let (stage, ttl_ms) = (Stage::Preparing, QUESTION_TTL_MS);
        Box::new(Self { stage, began, until: limit, limit, enough, ttl_ms, is_alone: true })
    }

    pub(super) fn round(&mut self) -> Option<&mut Round> {
        match &mut self.stage {
            Stage::Connecting(round) | Stage::Following(round) => Some(round),
            _ => None,
        }
    }

    /// Goes on after an event.
    pub(super) fn handle(&mut self, event: Event, actions: &mut dyn Actions) -> Progress {
        let stage = std::mem::replace(&mut self.stage, Stage::Preparing);
        match (stage, event) {
            (Stage::Preparing, Event::Prepared(Prepared { took_ms, .. })) => {
                self.set_aside(took_ms);
                self.connect(actions)
            }
            (Stage::Connecting(meeting), Event::Closed { .. }) => self.follow(meeting, actions),
            (Stage::LookingUpTheRest(meeting), Event::Prepared(prepared)) => {
                if !prepared.has_looked_up {
                    return Progress::Failed(Miss::Votes(Status::Unreachable, meeting));
                }
                self.enough = 0;
                self.set_aside(prepared.took_ms);
                self.connect(actions)
            }
            (Stage::PreparingToFollow, Event::Prepared(Prepared { took_ms, .. })) => {
                self.set_aside(took_ms);
                self.await_stragglers(actions)
            }
            (following @ Stage::Following(_), Event::Closed { .. }) => {
                self.stage = following;
                Progress::Connected
            }
            (stage, _) => {
                self.stage = stage;
                Progress::Pending
            }
        }
    }

    /// Adds the time that asking for passwords and looking up names took, because that is not the servers'
    /// time.
    fn set_aside(&mut self, took_ms: i64) {
        self.began = self.began.plus_ms(took_ms);
        self.until = self.until.plus_ms(took_ms);
        if self.is_alone {
            // Here the limit is the caller's time, not the end of a lock.
            self.limit = self.limit.plus_ms(took_ms);
        }
    }

    fn connect(&mut self, actions: &mut dyn Actions) -> Progress {
        let round = Round::connect(actions.roster().len());
        self.stage = Stage::Connecting(Box::new(round));
        self.ask_for_connections(self.until, actions)
    }

    fn ask_for_connections(&self, until: Moment, actions: &mut dyn Actions) -> Progress {
        let (since, reply_ms) = (actions.now(), reply_ms(actions, self.ttl_ms));
        actions.connect(Limits { since, until, reply_ms });
        Progress::Pending
    }

    fn follow(&mut self, meeting: Box<Round>, actions: &mut dyn Actions) -> Progress {
        if meeting.outcome() == Outcome::Reached {
            self.stage = Stage::PreparingToFollow;
            actions.prepare(0);
        } else if self.enough > 0 && actions.now() < self.until {
            self.stage = Stage::LookingUpTheRest(meeting);
            actions.prepare(usize::MAX);
        } else {
            return Progress::Failed(Miss::Votes(Status::Unreachable, meeting));
        }
        Progress::Pending
    }

    /// A quorum is connected, and other servers may be about to follow. The next request should reach them,
    /// too, because no thread may come to send it later.
    fn await_stragglers(&mut self, actions: &mut dyn Actions) -> Progress {
        let now = actions.now();
        let took_ms = now.ms_since(self.began);
        let grace_ms = match self.is_alone {
            true => took_ms.max(STRAGGLERS_MS),
            false => took_ms.clamp(STRAGGLERS_MIN_MS, STRAGGLERS_MS),
        };
        self.stage = Stage::Following(Box::new(Round::all_servers(actions.roster().len())));
        self.ask_for_connections(now.plus_ms(grace_ms).min(self.limit), actions)
    }
}

/// Connects now, and tells which servers are not connected.
pub(crate) struct Connect {
    /// The time for connecting, in milliseconds; 0 means the time of the settings.
    timeout_ms: i64,
    quorum: Option<Box<ConnectQuorum>>,
}

impl Connect {
    pub(crate) fn new(timeout_ms: i64) -> Self {
        Self { timeout_ms, quorum: None }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        let limit_ms = match self.timeout_ms {
            0 => actions.policy().connect_ms(),
            set => set,
        };
        let limit = actions.now().plus_ms(limit_ms);
        self.quorum = Some(ConnectQuorum::alone(limit, actions));
    }

    fn end(&mut self, actions: &mut dyn Actions) {
        if actions.policy().has_fencing() {
            // A server that has lost its numbers has no vote until they are restored. It is reported, too.
            actions.begin(Box::new(Restore::default()), Box::new(()));
        }
        let Some(all) = self.round() else { return };
        let result = match all.has_quorum() {
            true => Ok(Ended::Connected { absent: all.absent(actions.roster()) }),
            // Some connections were lost at once.
            false => Err(all.error(Status::Unreachable, actions.roster())),
        };
        actions.end(result);
    }
}

impl Operation for Connect {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        let Some(quorum) = &mut self.quorum else { return self.begin(actions) };
        match quorum.handle(event, actions) {
            Progress::Pending => {}
            Progress::Connected => self.end(actions),
            Progress::Failed(miss) => miss.end(actions),
        }
    }

    fn round(&mut self) -> Option<&mut Round> {
        self.quorum.as_mut()?.round()
    }
}
