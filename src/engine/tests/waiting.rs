//! What waits for what: threads, programs, and the driver.

use std::os::fd::AsRawFd;
use std::time::Duration;

use super::*;
use crate::protocol::token::Token;
use crate::system::socket;
use crate::transport::interest::Interest;

const HOUR_MS: i64 = 3_600_000;

/// An operation that handles each event with a closure.
pub(super) struct Does<F>(pub(super) F);

impl<F: FnMut(Event, &mut dyn Actions) + Send> Operation for Does<F> {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        (self.0)(event, actions);
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }
}

/// An operation that ends with this result at the first event.
fn ends(ended: fn() -> Ended) -> Box<dyn Operation> {
    Box::new(Does(move |_, actions: &mut dyn Actions| actions.end(Ok(ended()))))
}

/// An operation that goes on until it is cancelled or this moment comes.
pub(super) fn goes_on(until: Moment) -> Box<dyn Operation> {
    Box::new(Does(move |event, actions: &mut dyn Actions| match event {
        Event::Started => actions.wait_until(until),
        _ => actions.end(Ok(Ended::Left)),
    }))
}

/// The same for an operation that keeps a lock alive. Such an operation does not need connected servers.
fn keeps(until: Moment) -> Box<dyn Operation> {
    Box::new(Does(move |_, actions: &mut dyn Actions| {
        actions.keep(Token::from_random([7; 20]));
        actions.wait_until(until);
    }))
}

fn in_an_hour() -> Moment {
    clock::now().plus_ms(HOUR_MS)
}

/// Submits an operation. Returns its place, if it goes on.
fn submit(engine: &mut Engine, operation: Box<dyn Operation>) -> usize {
    engine.submit(operation, Box::new(()), None);
    engine.state.is_unsent = false;
    engine.state.slots.end().saturating_sub(1)
}

/// The threads whose wait is over.
fn told(engine: &mut Engine) -> Vec<usize> {
    let mut told = Vec::new();
    while let Some((thread, over)) = engine.next_end() {
        assert!(matches!(over, Wakening::TimeUp));
        told.push(thread);
    }
    told
}

#[test]
fn a_submitted_operation_ends_with_a_notice() {
    let mut engine = engine_of_three();
    assert!(!engine.has_event());
    engine.submit(ends(|| Ended::Left), Box::new(7), None);
    assert!(engine.has_event());
    let notice = engine.next_event().unwrap();
    assert_eq!(notice.payload.downcast_ref::<i32>(), Some(&7));
    assert!(matches!(notice.end, Ok(Ended::Left)));
    engine.submit(ends(|| Ended::Stopped), Box::new(8), None);
    assert!(!engine.has_event() && engine.next_event().is_none());
}

#[test]
fn the_driver_sends_submitted_calls() {
    let mut engine = engine_of_three();
    assert!(!engine.needs_driver() && !engine.is_due_earlier());
    engine.take_change();
    engine.submit(keeps(Moment::NEVER), Box::new(()), None);
    assert!(engine.needs_driver() && engine.is_due_earlier());
    assert!(engine.take_change(), "it does not know of it");
    engine.advance();
    assert!(!engine.needs_driver() && !engine.is_due_earlier());
}

#[test]
fn a_cancellation_hits_only_its_own_call() {
    let mut engine = engine_of_three();
    let (call, other) = <(Arc<CallHandle>, Arc<CallHandle>)>::default();
    other.begin_operation(0);
    engine.run(0, goes_on(Moment::NEVER), Some(&call));
    engine.cancel(&other);
    assert_eq!(next_end(&mut engine), None);
    engine.cancel(&call);
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
    // A call that was cancelled before it began.
    call.cancel();
    engine.run(1, goes_on(Moment::NEVER), Some(&call));
    assert_eq!(next_end(&mut engine), Some((1, Ok(()))));
}

#[test]
fn an_abandoned_manager_ends_all_unattended_work() {
    let mut engine = engine_of_three();
    engine.run(0, goes_on(Moment::NEVER), None);
    submit(&mut engine, goes_on(Moment::NEVER));
    engine.listen(3, Moment::NEVER);
    engine.stand_by(4);
    assert!(!engine.is_abandoned());
    engine.abandon();
    assert!(engine.is_abandoned());
    assert!(engine.next_event().is_some() && engine.next_event().is_none());
    assert_eq!(told(&mut engine), [3, 4]);
    // No thread can wait for events any more.
    engine.listen(5, Moment::NEVER);
    engine.stand_by(6);
    engine.end_waits(NOW);
    assert_eq!(told(&mut engine), [6, 5]);
}

#[test]
fn a_listener_is_woken_at_its_timeout() {
    let mut engine = engine_of_three();
    engine.listen(1, NOW);
    engine.listen(2, NOW.plus_ms(1));
    engine.take_change();
    engine.end_waits(NOW.plus_ms(-1));
    assert!(told(&mut engine).is_empty() && !engine.take_change());
    engine.end_waits(NOW);
    assert_eq!(told(&mut engine), [1]);
    assert!(engine.take_change(), "whoever waits for the sockets does not know it");
    engine.end_waits(NOW);
    assert!(told(&mut engine).is_empty() && !engine.take_change());
}

/// The thread has unwound, for example. The end of its call is for whoever takes events, and is not lost.
#[test]
fn a_call_without_its_thread_ends_as_an_event() {
    let (mut engine, call) = (engine_of_three(), Arc::new(CallHandle::default()));
    call.begin(1);
    engine.submit(goes_on(Moment::NEVER), Box::new(7), Some(&call));
    engine.await_call(3, &call, Moment::NEVER);
    engine.withdraw(3);
    engine.cancel(&call);
    assert!(told(&mut engine).is_empty() && engine.has_event());
}

#[test]
fn a_withdrawn_thread_is_not_woken() {
    let mut engine = engine_of_three();
    engine.listen(1, NOW);
    engine.listen(2, NOW);
    engine.stand_by(1);
    engine.withdraw(1);
    engine.end_waits(NOW);
    assert_eq!(told(&mut engine), [2]);
    engine.stand_by(4);
    engine.withdraw(1);
    engine.end_standing_by();
    assert_eq!(told(&mut engine), [4]);
    engine.stand_by(4);
    engine.withdraw(4);
    engine.end_standing_by();
    assert!(told(&mut engine).is_empty());
}

#[test]
fn an_action_of_a_visitor_reaches_the_waiting_call() {
    let mut engine = engine_of_three();
    let (asked, _) = ask(&mut engine, 0, 1);
    engine.for_server(1, |server, effects| {
        let (server, answer) = (server.index(), Answer::Done);
        effects.deliveries.push(Delivery { ticket: asked, server, answer, sent: true });
    });
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
}

#[test]
fn a_single_question_is_known_as_one() {
    let mut engine = engine_of_three();
    assert!(!engine.has_one_question());
    ask(&mut engine, 0, 1);
    assert!(engine.has_one_question());
    let (second, _) = ask(&mut engine, 1, 1);
    assert!(!engine.has_one_question());
    bring(&mut engine, second, 1);
    assert!(engine.has_one_question());
    engine.submit(ends(|| Ended::Left), Box::new(()), None);
    assert!(!engine.has_one_question());
}

#[test]
fn a_nap_ends_when_the_next_timer_is_due() {
    let mut engine = engine_of_three();
    assert_eq!(engine.note_nap(false), None);
    let until = in_an_hour();
    submit(&mut engine, keeps(until));
    // Servers that are not connected have nothing to do, unless an operation asks them.
    assert_eq!(engine.next_due(), until);
    assert!(engine.is_due_earlier());
    assert_eq!(engine.note_nap(true), None, "somebody else sees to it");
    let nap = engine.note_nap(false).unwrap();
    assert!(nap > Duration::ZERO && nap.as_millis() <= HOUR_MS.unsigned_abs().into());
    assert!(!engine.is_due_earlier() && !engine.needs_driver());
    submit(&mut engine, keeps(until.plus_ms(1)));
    assert!(!engine.is_due_earlier());
    submit(&mut engine, keeps(until.plus_ms(-1)));
    assert!(engine.is_due_earlier() && !engine.needs_driver());
    submit(&mut engine, goes_on(until));
    assert_eq!(engine.next_due(), Moment::from_nanos(0));
    assert!(engine.needs_driver());
}

#[test]
fn a_call_without_a_thread_is_unattended_while_it_asks() {
    let mut engine = engine_of_three();
    let place = submit(&mut engine, goes_on(Moment::NEVER));
    let waits = |state: &State| (state.open, state.has_unattended());
    assert_eq!(waits(&engine.state), (0, false));
    let state = &mut engine.state;
    // The operation waits for a chore. It is counted once, even if it says so twice.
    (0..2).for_each(|_| state.begin_preparing(place));
    assert_eq!(waits(state), (1, true));
    (0..2).for_each(|_| state.end_preparing(place));
    assert_eq!(waits(state), (0, false));
    (0..2).for_each(|_| state.begin_listening(place));
    assert_eq!(waits(state), (0, true));
    (0..2).for_each(|_| state.end_listening(place));
    assert_eq!(waits(state), (0, false));
    (0..2).for_each(|_| state.note_open(place));
    state.note_closed(place);
    assert_eq!(waits(state), (1, true));
    assert!(engine.needs_driver() && engine.is_due_earlier());
    engine.state.note_closed(place);
    assert_eq!(waits(&engine.state), (0, false));
    engine.run(0, goes_on(Moment::NEVER), None);
    let attended = ticket(&engine, 0).place();
    engine.state.note_open(attended);
    engine.state.begin_listening(attended);
    assert_eq!(waits(&engine.state), (1, false));
}

#[test]
fn calls_beyond_the_limit_start_later() {
    let mut engine = engine_of_three();
    let events = Events::default();
    let operation = Enough { answers: 1, events: Arc::clone(&events) };
    engine.state.open = 512;
    engine.run(0, Box::new(operation), None);
    engine.settle(NOW);
    assert!(events.lock().unwrap().is_empty());
    engine.state.open = 511;
    engine.settle(NOW);
    assert_eq!(*events.lock().unwrap(), [Event::Started]);
    // Other operations begin at once.
    let operation = Enough { answers: 1, events: Arc::clone(&events) };
    engine.run(1, Box::new(operation), None);
    assert_eq!(events.lock().unwrap().len(), 2);
}

#[test]
fn fewer_than_half_of_the_servers_are_no_quorum() {
    let most = |servers| (0..=servers).rev().find(|&it| state::leaves_a_quorum(it, servers));
    assert_eq!([1, 2, 3, 4, 5, 7].map(most), [0, 0, 1, 1, 2, 3].map(Some));
}

#[test]
fn a_hasty_question_waits_little_longer_than_the_servers() {
    for (doublings, wait_ms) in [(0, 20), (3, 160)] {
        let mut engine = engine_of_three();
        let (asked, _) = ask(&mut engine, 0, 3);
        let slot = engine.state.find(asked).unwrap();
        slot.operation = Some(Box::new(Hasty { doublings, heard: Arc::default() }));
        let before = clock::now();
        bring(&mut engine, asked, 1);
        let after = clock::now();
        let limit = engine.state.find(asked).unwrap().round.as_ref().unwrap().limit;
        assert!(limit >= before.plus_ms(wait_ms) && limit <= after.plus_ms(wait_ms));
        assert_eq!(engine.state.next_due(), limit);
    }
}

#[test]
fn haste_makes_no_wait_longer() {
    let mut engine = engine_of_three();
    let (asked, _) = ask(&mut engine, 0, 3);
    let limit = clock::now().plus_ms(5);
    let slot = engine.state.find(asked).unwrap();
    slot.operation = Some(Box::new(Hasty { doublings: 0, heard: Arc::default() }));
    slot.round.as_mut().unwrap().limit = limit;
    bring(&mut engine, asked, 1);
    assert_eq!(engine.state.find(asked).unwrap().round.as_ref().unwrap().limit, limit);
    assert_eq!(engine.state.next_due(), limit);
}

#[test]
fn silent_servers_count_as_failed_at_the_timeout() {
    let mut engine = engine_of_three();
    let (asked, _) = ask(&mut engine, 0, 3);
    let heard = Arc::<Mutex<Vec<usize>>>::default();
    let operation = Hasty { doublings: 0, heard: Arc::clone(&heard) };
    engine.state.find(asked).unwrap().operation = Some(Box::new(operation));
    bring(&mut engine, asked, 1);
    let limit = engine.state.next_due();
    engine.expire(limit.plus_ms(-1));
    assert_eq!(*heard.lock().unwrap(), [0]);
    engine.expire(limit);
    assert_eq!(*heard.lock().unwrap(), [0, 1, 2]);
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
    assert_eq!(engine.state.open, 0);
}

/// A confirmation has found that the lock ends earlier while it is being extended.
#[test]
fn a_limit_that_comes_nearer_ends_the_question_of_a_keeper() {
    let mut engine = engine_of_three();
    let (asked, _) = ask(&mut engine, 0, 3);
    let due = engine.state.next_due();
    for (limit, expected) in [(due.plus_ms(9), due), (due.plus_ms(-9), due.plus_ms(-9))] {
        engine.state.find(asked).unwrap().operation = Some(Box::new(Limited { limit }));
        let lock = Token::from_random([7; 20]);
        let place = asked.place();
        let wake = Does(move |_, actions: &mut dyn Actions| {
            actions.wake_keepers(lock);
            actions.end(Ok(Ended::Left));
        });
        engine.state.keepers.insert((lock, place));
        engine.run(1, Box::new(wake), None);
        assert_eq!(next_end(&mut engine), Some((1, Ok(()))));
        assert_eq!(engine.state.next_due(), expected);
    }
}

struct Limited {
    limit: Moment,
}

impl Operation for Limited {
    fn handle(&mut self, _: Event, actions: &mut dyn Actions) {
        actions.end(Ok(Ended::Left));
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }

    fn limit(&self) -> Option<Moment> {
        Some(self.limit)
    }
}

/// Makes haste, and never has enough answers.
struct Hasty {
    doublings: u32,
    heard: Arc<Mutex<Vec<usize>>>,
}

impl Operation for Hasty {
    fn handle(&mut self, _: Event, actions: &mut dyn Actions) {
        actions.end(Ok(Ended::Left));
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }

    fn hear(&mut self, server: usize, _: Answer, _: Moment) -> bool {
        self.heard.lock().unwrap().push(server);
        false
    }

    fn haste(&mut self, _: Moment) -> Option<u32> {
        Some(self.doublings)
    }
}

/// When the descriptor for event loops becomes readable at the latest, after a thread has left.
fn due(engine: &mut Engine, is_driven: bool) -> Moment {
    engine.settle_descriptor(is_driven);
    engine.readiness.as_ref().unwrap().due
}

#[test]
fn the_descriptor_is_readable_with_unattended_work() {
    const NOW: Moment = Moment::from_nanos(0);
    let mut engine = engine_of_three();
    // There is a descriptor on Linux, and none in a simulated world.
    let Ok(fd) = engine.descriptor() else { return };
    assert!(fd > 2 && engine.descriptor().unwrap() == fd);
    assert_eq!(due(&mut engine, false), Moment::NEVER);
    let until = in_an_hour();
    submit(&mut engine, keeps(until));
    assert_eq!(due(&mut engine, true), Moment::NEVER, "the driver sees to it");
    assert_eq!(due(&mut engine, false), until);
    engine.state.is_unsent = true;
    assert_eq!(due(&mut engine, true), until);
    assert_eq!(due(&mut engine, false), NOW);
    engine.forget_descriptor();
    assert!(engine.readiness.is_none());
}

#[test]
fn the_descriptor_is_readable_with_news() {
    const NOW: Moment = Moment::from_nanos(0);
    let mut engine = engine_of_three();
    if engine.descriptor().is_err() {
        return;
    }
    submit(&mut engine, ends(|| Ended::Left));
    assert_eq!(due(&mut engine, true), NOW);
    let mut engine = engine_of_three();
    engine.descriptor().unwrap();
    submit(&mut engine, Box::new(Does(|_, actions: &mut dyn Actions| actions.prepare(1))));
    assert_eq!(due(&mut engine, true), NOW);
}

#[test]
fn sockets_are_watched_again_only_without_a_driver() {
    let mut engine = engine_of_three();
    if engine.descriptor().is_err() {
        return;
    }
    // This descriptor is writable, and belongs to no server.
    let (_reader, writer) = io::pipe().unwrap();
    let other = Interest { fd: writer.as_raw_fd(), for_writing: true, socket: 0 };
    let mut is_ready = |is_driven| {
        let mut readiness = engine.readiness.take().unwrap();
        readiness.watch([other].into_iter());
        engine.readiness = Some(readiness);
        engine.settle_descriptor(is_driven);
        let mut watched = [socket::watch(engine.descriptor().unwrap(), false)];
        socket::poll(&mut watched, NOW, NOW);
        watched[0].revents != 0
    };
    assert_eq!([true, false].map(&mut is_ready), [true, false]);
}

/// An event loop would look again and again, as long as the other thread drives.
#[test]
fn a_look_beside_a_driver_is_not_woken_for_its_work() {
    let mut engine = engine_of_three();
    if engine.descriptor().is_err() {
        return;
    }
    let (_reader, writer) = io::pipe().unwrap();
    let other = Interest { fd: writer.as_raw_fd(), for_writing: true, socket: 0 };
    let due = clock::now();
    let mut readiness = engine.readiness.take().unwrap();
    readiness.watch([other].into_iter());
    readiness.set_due(due, due);
    engine.readiness = Some(readiness);
    let is_ready = |engine: &mut Engine| {
        engine.settle_descriptor(true);
        let mut watched = [socket::watch(engine.descriptor().unwrap(), false)];
        socket::poll(&mut watched, NOW, NOW);
        watched[0].revents != 0
    };
    assert!(is_ready(&mut engine));
    engine.rest_descriptor();
    assert!(!is_ready(&mut engine));
    // Except for what is to be told.
    submit(&mut engine, ends(|| Ended::Left));
    engine.rest_descriptor();
    assert!(is_ready(&mut engine));
}

/// Its place may be another thread's from then on.
#[test]
fn an_abandoned_call_leaves_nothing() {
    let mut engine = engine_of_three();
    engine.run(1, goes_on(Moment::NEVER), None);
    engine.run(2, goes_on(Moment::NEVER), None);
    engine.end_call(1);
    assert_eq!(next_end(&mut engine), Some((1, Ok(()))));
    assert_eq!(next_end(&mut engine), None);
    engine.end_call(1);
    assert_eq!(next_end(&mut engine), None);
}

/// Threads that wait without a limit have nobody behind them who would look up names.
#[test]
fn a_deferred_look_up_ends_the_waits_that_have_a_limit() {
    let mut engine = engine_of_three();
    engine.listen(1, Moment::from_nanos(i64::MAX - 1));
    engine.listen(2, Moment::NEVER);
    assert!(!engine.is_look_up_due(clock::now()));
    engine.defer(LookUps { names: Vec::new(), chore: None });
    assert!(engine.is_look_up_due(clock::now()));
    engine.end_waits(clock::now());
    let mut ended = || engine.ends.pop_front().map(|(thread, _)| thread);
    assert_eq!((ended(), ended()), (Some(1), None));
    assert_eq!(engine.take_deferred().len(), 1);
    assert!(!engine.is_look_up_due(clock::now()));
}

/// It has them looked up.
#[test]
fn a_deferred_look_up_calls_the_standby_thread_back() {
    let mut engine = engine_of_three();
    engine.listen(1, Moment::from_nanos(i64::MAX - 1));
    engine.stand_by(2);
    engine.defer(LookUps { names: Vec::new(), chore: None });
    engine.end_waits(clock::now());
    let mut ended = || engine.ends.pop_front().map(|(thread, _)| thread);
    assert_eq!((ended(), ended()), (Some(2), None));
}

/// Otherwise each answer of one server would cost a look at all of them.
#[test]
fn servers_are_advanced_only_if_one_may_be_due() {
    let (past, never) = (Moment::from_nanos(0), Moment::NEVER);
    let cases = [(true, false, never), (false, true, never), (false, false, past)];
    for (is_unsent, may_be_due, due) in cases {
        let mut engine = engine_of_three();
        engine.servers_due = due;
        engine.state.is_unsent = is_unsent;
        engine.state.effects.server_may_be_due = may_be_due;
        engine.advance();
        assert_eq!(engine.servers_due, past, "{is_unsent} {may_be_due}");
        assert!(!engine.state.is_unsent && !engine.state.effects.server_may_be_due);
    }
    let mut engine = engine_of_three();
    engine.servers_due = never;
    engine.advance();
    assert_eq!(engine.servers_due, never);
    // What is known of them may change with each visit.
    engine.for_server(1, |_, _| {});
    assert_eq!(engine.servers_due, past);
}
