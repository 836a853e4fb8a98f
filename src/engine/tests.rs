//! The engine with operations that do little: which threads and operations are notified, and which are not.

use std::sync::Mutex;

use super::state::{Open, Slot};
use super::*;
use crate::driver::Driven;
use crate::protocol::command::Answer;
use crate::protocol::conn::server_registry::ServerRegistry;
use crate::protocol::error::Status;
use crate::protocol::lock_kind::Target;
use crate::protocol::operation::round::Round;
use crate::protocol::operation::{Actions, Ended};
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::wait_queue::{TurnRequest, Wait};
use crate::transport::server::Delivery;

mod actions;
mod crowds;
mod pushes;
mod waiting;

const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

/// The events that an operation has received.
type Events = Arc<Mutex<Vec<Event>>>;

/// An operation whose question is decided after this number of answers.
struct Enough {
    answers: usize,
    events: Events,
}

impl Operation for Enough {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        self.events.lock().unwrap().push(event);
        if event != Event::Started {
            actions.end(Ok(Ended::Connected { absent: String::new() }));
        }
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }

    fn hear(&mut self, _: usize, _: Answer, _: Moment) -> bool {
        self.answers = self.answers.saturating_sub(1);
        self.answers == 0
    }
}

/// Waits in a queue until its wait ends. Then it ends, too, or panics.
struct Waiter {
    target: Target,
    thread: usize,
    number: u64,
    panics: bool,
}

impl Operation for Waiter {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        if event != Event::Started {
            assert!(!self.panics, "a fault that the test has put there");
            return actions.end(Ok(Ended::Connected { absent: String::new() }));
        }
        let (ticket, now) = (actions.ticket(), actions.now());
        let wait = Wait { pause_until: Moment::NEVER, until: Moment::NEVER };
        let turn = TurnRequest { is_urgent: false, is_last: false };
        let queues = actions.wait_queues();
        self.number = queues.join(&self.target, Some(self.thread), now);
        queues.begin(&self.target, self.number, turn, now);
        let until = queues.wait(&self.target, self.number, ticket, wait, now);
        actions.wait_until(until);
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }

    fn leave(&mut self, actions: &mut dyn Actions) {
        let now = actions.now();
        let next = actions.wait_queues().leave(&self.target, self.number, now);
        next.into_iter().for_each(|waiter| actions.end_wait(waiter));
    }
}

fn engine_of_three() -> Engine {
    let endpoint = Endpoint::parse("127.0.0.1", 1).unwrap();
    let server = |index| {
        let endpoint = endpoint.clone();
        let server_registry = Arc::new(ServerRegistry::new(3, Arc::default()));
        Server::new(index, endpoint, Arc::default(), Arc::default(), server_registry)
    };
    let roster = Roster::new(vec![endpoint.clone(); 3]);
    Engine::new((0..3).map(server).collect(), roster, Arc::default(), -1)
}

/// The ticket of the operation whose end the thread at this place waits for.
fn ticket(engine: &Engine, thread: usize) -> OpId {
    let is_its = |slot: &Slot| matches!(slot.caller, Caller::Thread(own) if own == thread);
    let (place, slot) = engine.state.slots.iter().find(|(_, slot)| is_its(slot)).unwrap();
    OpId::new(place, slot.generation)
}

/// Opens a question for the thread at this place. The servers are sent nothing.
fn ask(engine: &mut Engine, place: usize, answers: usize) -> (OpId, Events) {
    let events = Events::default();
    let operation = Enough { answers, events: Arc::clone(&events) };
    engine.run(place, Box::new(operation), None);
    let (pending, sent) = (ServerSet::first(3), ServerSet::default());
    let round = Open { pending, sent, since: NOW, reply_ms: 0, limit: Moment::NEVER };
    let asked = ticket(engine, place);
    engine.state.find(asked).unwrap().round = Some(round);
    engine.state.note_open(asked.place());
    (ticket(engine, place), events)
}

/// This number of servers answer.
fn bring(engine: &mut Engine, ticket: OpId, servers: usize) {
    let answer = |server| Delivery { ticket, server, answer: Answer::Done, sent: true };
    engine.state.effects.deliveries.extend((0..servers).map(answer));
    engine.settle(NOW);
}

fn end_wait(engine: &mut Engine, ticket: OpId) {
    engine.state.call(ticket, Event::TimeOut, Reason::IsCalled);
    engine.begin_turn();
    engine.settle(NOW);
}

fn join(engine: &mut Engine, place: usize, panics: bool) {
    let target = Target::from(Arc::<[u8]>::from(&b"resource"[..]));
    let waiter = Waiter { target, thread: place, number: 0, panics };
    engine.run(place, Box::new(waiter), None);
}

/// The thread place of the next operation that has ended, and the operation's status.
fn next_end(engine: &mut Engine) -> Option<(usize, Result<(), Status>)> {
    let (place, over) = engine.next_end()?;
    let Wakening::Ended(result) = over else { panic!("nobody waits for events") };
    Some((place, result.map(drop).map_err(|error| error.status())))
}

#[test]
fn answers_beyond_the_quorum_end_the_call_once() {
    let mut engine = engine_of_three();
    let (ticket, events) = ask(&mut engine, 0, 2);
    bring(&mut engine, ticket, 3);
    let sent = ServerSet::first(3);
    assert_eq!(*events.lock().unwrap(), [Event::Started, Event::Closed { sent }]);
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
    assert_eq!(next_end(&mut engine), None);
}

/// The driver may poll a socket that another thread has already read, and with it the last answer to the
/// driver's own call. Then no socket wakes the driver. The waker does, which is the task of `driver.rs`;
/// `tests/pure/model` tries every order for it.
#[test]
fn a_call_ended_by_a_visitor_wakes_the_driver() {
    let mut engine = engine_of_three();
    let (asked, _) = ask(&mut engine, 0, 1);
    engine.take_change();
    bring(&mut engine, asked, 1);
    assert!(engine.take_change(), "its answer came");
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
    join(&mut engine, 0, false);
    assert!(!engine.take_change());
    let waiter = ticket(&engine, 0);
    end_wait(&mut engine, waiter);
    assert!(engine.take_change(), "its wait was ended");
    ask(&mut engine, 0, 9);
    let late = ticket(&engine, 0);
    engine.state.set_until(late.place(), NOW);
    engine.take_change();
    engine.expire(NOW);
    assert!(engine.take_change(), "its time was up");
}

#[test]
fn a_late_answer_does_not_reach_the_next_call() {
    let mut engine = engine_of_three();
    let (early, _) = ask(&mut engine, 0, 1);
    bring(&mut engine, early, 1);
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
    let (late, events) = ask(&mut engine, 0, 1);
    bring(&mut engine, early, 3);
    assert_eq!(next_end(&mut engine), None);
    bring(&mut engine, late, 1);
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
    join(&mut engine, 0, false);
    end_wait(&mut engine, early);
    end_wait(&mut engine, late);
    assert_eq!(next_end(&mut engine), None);
    assert_eq!(events.lock().unwrap().len(), 2);
}

#[test]
fn a_panic_ends_only_its_own_operation() {
    let mut engine = engine_of_three();
    join(&mut engine, 0, true);
    join(&mut engine, 1, false);
    let (asked, _) = ask(&mut engine, 2, 1);
    let head = ticket(&engine, 0);
    end_wait(&mut engine, head);
    assert_eq!(next_end(&mut engine), Some((0, Err(Status::Internal))));
    // The second waiter is now the head of the queue.
    assert_eq!(next_end(&mut engine), Some((1, Ok(()))));
    assert_eq!(next_end(&mut engine), None);
    bring(&mut engine, asked, 1);
    assert_eq!(next_end(&mut engine), Some((2, Ok(()))));
    // The place of the first waiter can be used again.
    join(&mut engine, 0, false);
    let next = ticket(&engine, 0);
    end_wait(&mut engine, next);
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
}

#[test]
fn an_early_call_back_ends_the_standby_at_once() {
    let mut engine = engine_of_three();
    engine.end_standing_by();
    engine.stand_by(4);
    assert!(matches!(engine.next_end(), Some((4, Wakening::TimeUp))));
    engine.stand_by(4);
    assert!(engine.next_end().is_none(), "it was called back once");
}
