//! The actions that an operation can take through the engine.

use super::waiting::{Does, goes_on};
use super::*;
use crate::protocol::log_line::Level;
use crate::protocol::operation::Prepared;
use crate::protocol::stats::Mark;
use crate::protocol::token::Token;

/// An operation that runs `first` when it begins, and records the next event.
fn does(first: impl Fn(&mut dyn Actions) + Send + 'static, events: &Events) -> Box<dyn Operation> {
    let events = Arc::clone(events);
    Box::new(Does(move |event, actions: &mut dyn Actions| {
        if event == Event::Started {
            return first(actions);
        }
        events.lock().unwrap().push(event);
        actions.end(Ok(Ended::Left));
    }))
}

/// Runs an operation that does this and then ends.
fn do_it(engine: &mut Engine, first: impl Fn(&mut dyn Actions) + Send + 'static) {
    let once = Does(move |_, actions: &mut dyn Actions| {
        first(actions);
        actions.end(Ok(Ended::Left));
    });
    engine.run(9, Box::new(once), None);
    assert_eq!(next_end(engine), Some((9, Ok(()))));
}

fn lock() -> Token {
    Token::from_random([7; 20])
}

#[test]
fn an_operation_ends_another_wait_or_gives_a_turn() {
    for (gives_turn, event) in [(true, Event::YourTurn), (false, Event::TimeOut)] {
        let (mut engine, events) = (engine_of_three(), Events::default());
        engine.run(0, does(|actions| actions.wait_until(Moment::NEVER), &events), None);
        let waiter = ticket(&engine, 0);
        do_it(&mut engine, move |actions| match gives_turn {
            true => actions.give_turn(waiter),
            false => actions.end_wait(waiter),
        });
        assert_eq!(*events.lock().unwrap(), [event]);
        assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
    }
}

#[test]
fn a_kept_lock_is_woken_by_token_and_is_no_work() {
    let (mut engine, events) = (engine_of_three(), Events::default());
    assert!(!engine.state.is_busy());
    engine.run(0, does(|actions| actions.keep(lock()), &events), None);
    assert_eq!(engine.waiting_and_kept(), (0, 1));
    assert!(!engine.state.is_busy(), "to keep a lock is to wait");
    engine.run(1, goes_on(Moment::NEVER), None);
    assert!(engine.state.is_busy());
    let other = ticket(&engine, 1);
    end_wait(&mut engine, other);
    assert_eq!(next_end(&mut engine), Some((1, Ok(()))));
    assert!(!engine.state.is_busy(), "one of two places is free");
    let keeper = ticket(&engine, 0).place();
    engine.state.note_open(keeper);
    assert!(engine.state.is_busy(), "it is extended");
    engine.state.note_closed(keeper);
    do_it(&mut engine, |actions| actions.wake_keepers(Token::from_random([8; 20])));
    assert!(events.lock().unwrap().is_empty());
    do_it(&mut engine, |actions| actions.wake_keepers(lock()));
    assert_eq!(*events.lock().unwrap(), [Event::TimeOut]);
    assert_eq!(next_end(&mut engine), Some((0, Ok(()))));
    assert_eq!(engine.waiting_and_kept(), (0, 0));
    assert!(!engine.state.is_busy());
}

#[test]
fn a_started_operation_ends_with_a_notice() {
    let mut engine = engine_of_three();
    do_it(&mut engine, |actions| {
        let begun = Does(|_, actions: &mut dyn Actions| actions.end(Ok(Ended::Detached)));
        actions.begin(Box::new(begun), Box::new(5));
    });
    let notice = engine.next_event().unwrap();
    assert_eq!(notice.payload.downcast_ref::<i32>(), Some(&5));
    assert!(matches!(notice.end, Ok(Ended::Detached)));
}

#[test]
fn only_wanted_chores_are_done() {
    let (mut engine, events) = (engine_of_three(), Events::default());
    assert!(!engine.has_chore() && engine.next_chore().is_none());
    engine.take_change();
    for thread in [0, 1] {
        engine.run(thread, does(move |actions| actions.prepare(thread), &events), None);
    }
    assert!(engine.has_chore() && engine.take_change());
    assert_eq!(engine.state.open, 2);
    let early = ticket(&engine, 0);
    end_wait(&mut engine, early);
    assert_eq!((next_end(&mut engine), engine.state.open), (Some((0, Ok(()))), 1));
    let chore = engine.next_chore().unwrap();
    assert_eq!(chore.enough, 1);
    assert!(!engine.has_chore());
    engine.prepared(chore, Prepared::default());
    assert_eq!(events.lock().unwrap()[1..], [Event::Prepared(Prepared::default())]);
    assert_eq!((next_end(&mut engine), engine.state.open), (Some((1, Ok(()))), 0));
    // A chore that is done too late reaches no operation.
    engine.prepared(chore, Prepared::default());
    assert_eq!(next_end(&mut engine), None);
}

/// A chore runs beside the driving thread. Afterwards its operation may have the earliest deadline of all.
#[test]
fn a_wait_after_a_chore_reaches_the_driver() {
    let mut engine = engine_of_three();
    let prepares = |event, actions: &mut dyn Actions| match event {
        Event::Started => actions.prepare(3),
        _ => actions.wait_until(Moment::from_nanos(1)),
    };
    engine.run(0, Box::new(Does(prepares)), None);
    let chore = engine.next_chore().unwrap();
    engine.take_change();
    engine.watched_until = Moment::NEVER;
    engine.watch(true);
    assert_ne!(engine.watched_until, Moment::NEVER);
    // These servers always have work to do, which is not tested here.
    engine.watched_until = Moment::NEVER;
    assert!(!engine.take_change());
    engine.prepared(chore, Prepared::default());
    assert!(engine.take_change(), "it waits for too long");
}

#[test]
fn a_listening_operation_needs_a_driver() {
    let (mut engine, events) = (engine_of_three(), Events::default());
    engine.submit(does(|actions| actions.listen(), &events), Box::new(()), None);
    assert!(engine.state.has_unattended());
    engine.cancel_at(0);
    assert!(!engine.state.has_unattended());
}

#[test]
fn an_operation_gets_random_numbers_and_the_policy() {
    let mut engine = engine_of_three();
    let policy = std::ptr::from_ref(&*engine.state.policy).addr();
    do_it(&mut engine, move |actions| {
        assert_eq!(std::ptr::from_ref(actions.policy()).addr(), policy);
        let draw = || actions.random().unwrap();
        assert_ne!(draw(), draw());
        // No test runs in 1970.
        assert!(actions.wall_us() > 1);
        assert!(!actions.draw_token().unwrap().as_str().is_empty());
    });
}

#[test]
fn an_operation_can_mark_a_loss() {
    let mut engine = engine_of_three();
    do_it(&mut engine, |actions| actions.mark(Mark::Unkept));
    assert_eq!(engine.counts().kept_lost, 1);
}

#[test]
fn recent_connections_count_as_connected() {
    let mut engine = engine_of_three();
    do_it(&mut engine, |actions| assert!(!actions.is_connected(1, 0)));
    engine.state.effects.health.note(2, Moment::from_nanos(i64::MAX / 2));
    do_it(&mut engine, |actions| assert!(actions.is_connected(2, 0)));
}

#[test]
fn log_lines_are_taken_once() {
    let mut engine = engine_of_three();
    engine.state.effects.lines.push((Level::Event, String::from("words")));
    assert_eq!(engine.take_words(), [(Level::Event, String::from("words"))]);
    assert!(engine.take_words().is_empty());
}

#[test]
fn a_look_without_sockets_finds_nothing() {
    let mut engine = engine_of_three();
    // The engine reads the real clock here, which counts from the start of the machine.
    engine.listen(1, Moment::from_nanos(0));
    let mut watch = engine.watch(false);
    Engine::poll(&mut watch);
    assert!(!engine.resume(watch), "it was woken");
    assert!(matches!(engine.next_end(), Some((1, Wakening::TimeUp))));
}
